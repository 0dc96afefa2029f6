#include "nacre/train/device_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/engine/linked_communicator.h"
#include "nacre/engine/staged_communicator.h"

namespace nacre {
namespace {

constexpr const char* kOnHost = "it computes on the host";

// What a process tells the others about its device.
struct Card {
  // Identifies the GPU among the GPUs of all machines; empty if it cannot be linked.
  std::string gpu;
  std::string version;  // version of NCCL
  std::string why_not;  // why the device cannot be linked; empty if it can

  std::string text() const { return gpu + "\n" + version + "\n" + why_not; }
};

Card parse_card(const std::string& text) {
  const size_t first = text.find('\n'), second = text.find('\n', first + 1);
  NACRE_CHECK(first != std::string::npos && second != std::string::npos,
              "a rank has sent an incomplete description of its device");
  return {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

Card own_card(const RunDevice& device, const DeviceChoice& choice) {
  if (device.on_host()) return {"", "", kOnHost};
  if (choice.multiprocessors > 0) return {"", "", "it computes on a part of a GPU"};
  std::string why;
  LinkPlugin* plugin = link_plugin(&why);
  if (plugin == nullptr) return {"", "", why};
  return {plugin->uuid(choice.index), plugin->version(), ""};
}

// Returns why the devices of these processes cannot be linked; an empty text if they can.
std::string why_not(const std::vector<Card>& cards) {
  for (size_t r = 0; r < cards.size(); ++r) {
    if (cards[r].gpu.empty()) return fmt::format("rank {} cannot use NCCL: {}", r, cards[r].why_not);
    for (size_t s = 0; s < r; ++s) {
      if (cards[s].gpu == cards[r].gpu) return fmt::format("ranks {} and {} share a GPU", s, r);
    }
    if (cards[r].version != cards[0].version) {
      return fmt::format("rank 0 has NCCL {}, but rank {} has NCCL {}", cards[0].version, r, cards[r].version);
    }
  }
  return "";
}

DeviceLinks link_by_nccl(std::unique_ptr<Communicator> host, const RunDevice& device, int index, double timeout) {
  LinkPlugin& plugin = *link_plugin();
  LinkPlace place;
  place.device = index;
  place.rank = host->rank();
  place.size = host->size();
  place.id = host->broadcast(0, place.rank == 0 ? plugin.new_id() : "");
  place.timeout = timeout;
  std::unique_ptr<DeviceLink> link = plugin.connect(place);
  return {make_linked_communicator(std::move(host), device.gpu_compiler(), std::move(link)),
          fmt::format("rows travel from GPU to GPU by NCCL {}", plugin.version())};
}

}  // namespace

DeviceLinks link_devices(std::unique_ptr<Communicator> host, const RunDevice& device, const RunConfig& config) {
  const DeviceChoice choice = choose_device(config.device, config.precision, "--devices");
  std::vector<Card> cards;
  for (const std::string& text : host->all_gather(own_card(device, choice).text())) cards.push_back(parse_card(text));
  const std::string reason = config.ranks.comm == "staged" ? "--comm staged asks for it" : why_not(cards);
  if (reason.empty()) return link_by_nccl(std::move(host), device, choice.index, config.ranks.timeout);
  if (config.ranks.comm == "nccl")
    throw UserError("--comm nccl", reason, "use --comm auto, or give each process a GPU of its own");
  const bool no_gpus = std::all_of(cards.begin(), cards.end(), [](const Card& c) { return c.why_not == kOnHost; });
  DeviceLinks links;
  if (!no_gpus) links.note = "rows of GPUs travel through the memory of the host: " + reason;
  links.communicator =
      device.on_host() ? std::move(host) : make_staged_communicator(std::move(host), device.gpu_compiler());
  return links;
}

}  // namespace nacre

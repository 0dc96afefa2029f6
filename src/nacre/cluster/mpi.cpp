#include "nacre/cluster/mpi.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "nacre/base/plugin_library.h"
#include "nacre/cluster/mpi_abi.h"
#include "nacre/cluster/packet_hub.h"
#include "nacre/cluster/rank_router.h"

namespace nacre {
namespace {

// The rank that prints the message of a failure ends this many seconds before the other ranks. It
// must print first, because the launcher ends all ranks when the first of them has ended.
constexpr double kTellerFirst = 1;

// Returns the value of a variable of the environment, if this value is a number.
std::optional<int> number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

// Returns the number of processes that the launcher has started, if it says so.
std::optional<int> launched_size() {
  if (const auto size = number("OMPI_COMM_WORLD_SIZE")) return size;
  if (const auto size = number("PMI_SIZE"); size && number("PMI_RANK")) return size;
  // The shell of sbatch and salloc has SLURM_PROCID and SLURM_NTASKS too, but srun has not started
  // this shell as a step of the job. A step of one task is usually an interactive shell.
  if (const auto size = number("SLURM_STEP_NUM_TASKS"); size && *size > 1 && number("SLURM_PROCID")) return size;
  return std::nullopt;
}

std::unique_ptr<Transport> open_transport(double timeout, LastWords last_words) {
  const PluginFunction found = open_plugin_function(kMpiPluginFile, kMpiPluginEntry);
  if (found.address == nullptr) {
    throw UserError("MPI", found.path.empty() ? "this build has no MPI plug-in" : found.why,
                    "install Open MPI (libopenmpi-dev) and build again, or start the program without mpirun");
  }
  try {
    std::unique_ptr<Transport> transport(reinterpret_cast<MpiPluginEntry>(found.address)(kMpiAbi, timeout, last_words));
    if (transport == nullptr) throw UserError("MPI", found.path + " belongs to another version of nacre");
    return transport;
  } catch (const TransportError& error) {
    throw UserError("MPI", error.what(), "start the program with the mpirun of the MPI that it was built with");
  }
}

}  // namespace

bool launched_by_mpi() {
  if (launched_size()) return true;
  // Some launchers set only the variables of PMIx. Slurm sets these variables too, but
  // launched_size() has already decided about Slurm by its number of tasks.
  return std::getenv("PMIX_NAMESPACE") != nullptr && number("PMIX_RANK") && std::getenv("SLURM_JOB_ID") == nullptr;
}

MpiRanks::MpiRanks(double timeout, LastWords last_words)
    : hub_(std::make_shared<PacketHub>(open_transport(timeout, last_words))) {
  const int expected = launched_size().value_or(size());
  if (expected != size()) {
    throw UserError(
        "MPI",
        "the launcher started " + std::to_string(expected) + " processes, but MPI finds " + std::to_string(size()),
        "use the mpirun of the MPI that nacre was built with; with srun, try --mpi=pmix");
  }
}

MpiRanks::~MpiRanks() = default;

int MpiRanks::rank() const { return hub_->rank(); }
int MpiRanks::size() const { return hub_->size(); }
int MpiRanks::local_size() const { return hub_->transport().local_size(); }
int MpiRanks::local_rank() const { return hub_->transport().local_rank(); }

std::unique_ptr<Communicator> MpiRanks::connect(double timeout) { return hub_->connect(timeout); }

std::shared_ptr<RankRouter> MpiRanks::route(std::vector<int> process_of) {
  return std::make_shared<RankRouter>(hub_, std::move(process_of));
}

void MpiRanks::run(const std::function<void(Communicator&)>& body, double timeout) {
  const auto own = connect(timeout);
  try {
    body(*own);
    own->barrier();  // if another rank's body throws, this rank learns it here at the latest
  } catch (const RankFailure& failure) {
    const RankFailure agreed = own->pass_on(failure);
    teller_ = agreed.teller();
    throw RankFailure(agreed);
  } catch (const std::exception& error) {
    const RankFailure failure = own->abort(error.what());
    teller_ = failure.teller();
    if (failure.rank() == rank()) throw;
    throw RankFailure(failure);
  }
  close(timeout);
}

void MpiRanks::close(double timeout) {
  try {
    connect(timeout)->barrier();
  } catch (const RankFailure& failure) {
    teller_ = failure.teller();
    throw;
  }
  hub_->close(exits_within_);
}

bool MpiRanks::tells(const std::exception& error) const {
  const auto* failure = dynamic_cast<const RankFailure*>(&error);
  return failure == nullptr || failure->teller() == rank();
}

void MpiRanks::end_all(int code) {
  if (teller_ >= 0 && teller_ != rank()) std::this_thread::sleep_for(std::chrono::duration<double>(kTellerFirst));
  const auto lock = hub_->lock();
  hub_->transport().end_all(code);
  std::_Exit(code);  // the compiler does not know that the line above does not return
}

}  // namespace nacre

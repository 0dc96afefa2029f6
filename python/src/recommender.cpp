// Defines nacre._core.Recommender: a model of users and items with the weights of a run.
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "account.h"
#include "common.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "recommend.h"
#include "stored_run.h"

namespace nacre::python {
namespace {

// Holds the best items of some users: for each user the numbers of k items, counted from 0, and
// their scores. If a user has fewer items left, the remaining numbers are -1 and their scores are
// NaN.
struct Best {
  std::unique_ptr<int64_t[]> items;
  std::unique_ptr<float[]> scores;
};

// Recommends items. Several threads may call the functions of one object; one call waits for the
// other.
class Recommender {
 public:
  Recommender(const GraphData* graph, const std::string& path, const std::string& device) {
    refuse_after_fork();
    const GilRelease release;
    StoredRun run(graph, path, device);
    cli::MemoryAccount account(run.config, purpose_of(graph, false, run.trained.bytes()));
    Dataset dataset = data_of(graph, run.config);
    if (!is_recommendation(dataset))
      throw UserError(dataset.name, "has no held-out pairs of users and items", "use run.predict()");
    session_ = cli::open_recommender(std::move(dataset), run.config, {run.trained, account});
  }

  ~Recommender() {
    const GilRelease release;  // threads that end may still send a message, which needs
                               // the interpreter's lock
    session_.reset();
  }
  Recommender(const Recommender&) = delete;
  Recommender& operator=(const Recommender&) = delete;

  // Returns the k best items of the users, or of all users if none are named, and their scores.
  nb::tuple best(const std::optional<Ids>& users, int64_t k) {
    if (k < 1) throw UserError("k", "must be at least 1");
    const std::vector<NodeId> of = users ? checked(*users) : all_users();
    const int64_t most = std::min(k, session_->sides().num_items);
    require_room(static_cast<int64_t>(of.size()), most);
    Best found = alone_([&] { return best_of(of, most); });
    const std::vector<size_t> shape = {of.size(), static_cast<size_t>(most)};
    return nb::make_tuple(owned(std::move(found.items), shape), owned(std::move(found.scores), shape));
  }

  nb::object embeddings() {
    const std::vector<size_t> shape = {static_cast<size_t>(session_->dataset().num_nodes()),
                                       static_cast<size_t>(session_->embedding_width())};
    return owned(alone_([&] { return copy_of(session_->embeddings(), shape); }), shape);
  }

  std::map<std::string, double> evaluate() {
    return alone_([&]() -> std::map<std::string, double> {
      const Scores scores = session_->evaluate(false);
      const RankingScores& test = session_->test_ranking();
      return {{"test", scores.test}, {"val", scores.val}, {"recall", test.recall}, {"ndcg", test.ndcg}};
    });
  }

  std::string metric() const { return session_->metric(); }

 private:
  // Throws UserError if the k best items of this number of users do not fit into memory.
  void require_room(int64_t users, int64_t k) const {
    const int64_t result = users * k * static_cast<int64_t>(sizeof(int64_t) + sizeof(float));
    const int64_t need = session_->ranking_bytes(k) + result, free = available_memory();
    if (need <= free) return;
    throw UserError(
        "k",
        fmt::format("{} items of each of {} users need {}, but only {} of memory are free", k, human_count(users),
                    human_bytes(static_cast<double>(need)), human_bytes(static_cast<double>(free))),
        "ask for fewer items, or for some of the users");
  }

  std::vector<NodeId> all_users() const {
    std::vector<NodeId> users(static_cast<size_t>(session_->sides().num_users));
    std::iota(users.begin(), users.end(), NodeId{0});
    return users;
  }

  std::vector<NodeId> checked(const Ids& users) const {
    const int64_t most = session_->sides().num_users;
    return node_ids(users, most, [&](int64_t user, size_t) {
      throw UserError("users", fmt::format("user {} does not exist: there are {}", user, human_count(most)),
                      "number the users from 0");
    });
  }

  Best best_of(const std::vector<NodeId>& users, int64_t k) {
    const UserItemSides& sides = session_->sides();
    const int64_t width = session_->embedding_width();
    const float* rows = session_->embeddings();
    const float* of_users = rows + int64_t{sides.first_user} * width;
    const float* of_items = rows + int64_t{sides.first_item} * width;
    const std::vector<NodeId> items = best_items({of_users, of_items, width}, session_->taken(), users, k);
    Best best{std::make_unique<int64_t[]>(items.size()), std::make_unique<float[]>(items.size())};
    for (size_t i = 0; i < items.size(); ++i) {
      const bool none = items[i] == kNoItem;
      best.items[i] = none ? -1 : int64_t{items[i]};
      const float* user = of_users + int64_t{users[i / static_cast<size_t>(k)]} * width;
      best.scores[i] = none ? std::numeric_limits<float>::quiet_NaN()
                            : std::inner_product(user, user + width, of_items + int64_t{items[i]} * width, 0.0F);
    }
    return best;
  }

  OneAtATime alone_;
  std::unique_ptr<RecommendSession> session_;
};

}  // namespace

void add_recommender(nb::module_& m) {
  nb::class_<Recommender>(m, "Recommender", "A recommender with the weights of a run.")
      .def(nb::init<const GraphData*, const std::string&, const std::string&>(), nb::arg("graph").none(),
           nb::arg("path"), nb::arg("device"))
      .def("best", &Recommender::best, nb::arg("users").none(), nb::arg("k"),
           "Returns the k best items of the users, or of all users, and their scores.")
      .def("embeddings", &Recommender::embeddings, "Returns the embeddings of all users and items, float32.")
      .def("evaluate", &Recommender::evaluate, "Returns the scores of the held-out pairs.")
      .def_prop_ro("metric", &Recommender::metric);
}

}  // namespace nacre::python

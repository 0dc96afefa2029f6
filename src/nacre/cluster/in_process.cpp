#include "nacre/cluster/in_process.h"

#include <algorithm>
#include <utility>

#include "nacre/cluster/group.h"

namespace nacre {
namespace {

class GroupOperation final : public CommOperation {
 public:
  GroupOperation(std::shared_ptr<RankGroup> group, int rank, uint64_t number, std::vector<std::string>* texts = nullptr)
      : group_(std::move(group)), rank_(rank), number_(number), texts_(texts) {}
  ~GroupOperation() override {
    if (!finished_) group_->give_up(rank_, number_);
  }
  GroupOperation(const GroupOperation&) = delete;
  GroupOperation& operator=(const GroupOperation&) = delete;

  void finish() override {
    idle_ = group_->finish(rank_, number_, texts_);
    finished_ = true;
  }
  double idle_seconds() const override { return idle_; }

 private:
  std::shared_ptr<RankGroup> group_;
  int rank_;
  uint64_t number_;
  std::vector<std::string>* texts_;
  bool finished_ = false;
  double idle_ = 0;
};

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(int rank, int size, std::shared_ptr<RankGroup> group)
      : Communicator(rank, size), group_(std::move(group)) {}
  ~InProcessCommunicator() override { group_->leave(rank()); }
  InProcessCommunicator(const InProcessCommunicator&) = delete;
  InProcessCommunicator& operator=(const InProcessCommunicator&) = delete;

  RankFailure abort(const std::string& reason) override { return group_->abort(rank(), reason); }
  bool failed() const override { return group_->failed(); }
  void measure(bool on) override { group_->memory().measure(rank(), on); }
  DeviceSeconds take_seconds() override { return group_->memory().take_seconds(rank()); }

 private:
  std::unique_ptr<CommOperation> begin(const ExchangeRequest& request) override {
    return operation(group_->start(rank(), request));
  }
  std::unique_ptr<CommOperation> begin(const Reduction& sum) override {
    return operation(group_->start(rank(), sum.type, sum.data, sum.count, sum.name));
  }
  std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) override {
    return operation(group_->start(rank(), texts[rank()]), &texts);
  }
  std::unique_ptr<CommOperation> operation(uint64_t number, std::vector<std::string>* texts = nullptr) const {
    return std::make_unique<GroupOperation>(group_, rank(), number, texts);
  }

  std::shared_ptr<RankGroup> group_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_group(int size, const GroupOptions& options) {
  NACRE_CHECK(size > 0, "a group of ranks is empty");
  const auto group = std::make_shared<RankGroup>(size, options);
  std::vector<std::unique_ptr<Communicator>> all;
  all.reserve(size);
  for (int r = 0; r < size; ++r) {
    if (options.members.empty() || std::binary_search(options.members.begin(), options.members.end(), r))
      all.push_back(std::make_unique<InProcessCommunicator>(r, size, group));
  }
  return all;
}

}  // namespace nacre

#include "nacre/cluster/communicator.h"

#include <utility>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {

CallCounters& CallCounters::operator+=(const CallCounters& other) {
  calls += other.calls;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  elapsed += other.elapsed;
  waited += other.waited;
  idle += other.idle;
  return *this;
}

PendingCall::PendingCall(std::unique_ptr<CommOperation> operation, const char* name, CallCounters counters,
                         std::shared_ptr<CallCounters> total)
    : operation_(std::move(operation)),
      name_(name),
      counters_(counters),
      started_(now_seconds()),
      total_(std::move(total)) {}

PendingCall::~PendingCall() = default;
PendingCall::PendingCall(PendingCall&&) noexcept = default;

void PendingCall::wait() {
  if (operation_ == nullptr) return;
  const TraceSpan span("cluster", name_);
  const double began = now_seconds();
  operation_->finish();
  counters_.idle = operation_->idle_seconds();
  operation_.reset();
  const double ended = now_seconds();
  counters_.calls = 1;
  counters_.elapsed = ended - started_;
  counters_.waited = ended - began;
  *total_ += counters_;
}

Communicator::Communicator(int rank, int size)
    : rank_(rank),
      size_(size),
      exchanged_(std::make_shared<CallCounters>()),
      reduced_(std::make_shared<CallCounters>()),
      gathered_(std::make_shared<CallCounters>()) {}

Communicator::~Communicator() = default;

void Communicator::check(const ExchangeRequest& request) const {
  std::vector<bool> to(size_), from(size_);
  const auto once = [&](int peer, std::vector<bool>& seen) {
    NACRE_CHECK(peer >= 0 && peer < size_, "an exchange names rank " + std::to_string(peer) + ", which does not exist");
    NACRE_CHECK(!seen[peer], "an exchange has two messages for rank " + std::to_string(peer));
    seen[peer] = true;
  };
  for (const SendRows& send : request.sends) once(send.peer, to);
  for (const ReceiveRows& receive : request.receives) once(receive.peer, from);
}

PendingCall Communicator::start_exchange(const ExchangeRequest& request) {
  check(request);
  CallCounters counters;
  for (const SendRows& send : request.sends) counters.bytes_sent += send.peer == rank_ ? 0 : send.rows.bytes();
  for (const ReceiveRows& receive : request.receives) {
    counters.bytes_received += receive.peer == rank_ ? 0 : receive.rows.bytes();
  }
  return {begin(request), request.name, counters, exchanged_};
}

PendingCall Communicator::start_all_reduce(SumType type, void* data, int64_t count, const char* name) {
  NACRE_CHECK(type != SumType::bf16, "arrays of bf16 are not summed");
  CallCounters counters;
  counters.bytes_sent = sum_bytes_sent(type, count, rank_, size_);
  counters.bytes_received = sum_bytes_received(type, count, rank_, size_);
  return {begin(Reduction{type, data, count, name}), name, counters, reduced_};
}

std::vector<std::string> Communicator::all_gather(std::string_view own) {
  std::vector<std::string> texts(size_);
  texts[rank_] = own;
  PendingCall call(begin(texts), "gather", {}, gathered_);
  call.wait();
  gathered_->bytes_sent += static_cast<int64_t>(own.size()) * (size_ - 1);
  for (int r = 0; r < size_; ++r) gathered_->bytes_received += r == rank_ ? 0 : static_cast<int64_t>(texts[r].size());
  return texts;
}

std::string Communicator::broadcast(int root, std::string_view text) {
  NACRE_CHECK(root >= 0 && root < size_,
              "a broadcast comes from rank " + std::to_string(root) + ", which does not exist");
  return std::move(all_gather(rank_ == root ? text : std::string_view())[root]);
}

CommCounters Communicator::counters() const { return {*exchanged_, *reduced_, *gathered_}; }

}  // namespace nacre

// Makes the calls of ranks in different processes. Each function makes one kind of call.
#pragma once

#include <memory>

#include "nacre/cluster/packet_call.h"

namespace nacre {

std::unique_ptr<PacketCall> make_exchange_call(CallPort& port, uint64_t number, const ExchangeRequest& request);
std::unique_ptr<PacketCall> make_sum_call(CallPort& port, uint64_t number, const char* name, SumSize size, void* data);
// Makes a call that gathers texts. `texts` has an entry for each rank; the call sets the entries of
// the other ranks.
std::unique_ptr<PacketCall> make_gather_call(CallPort& port, uint64_t number, std::vector<std::string>& texts);

}  // namespace nacre

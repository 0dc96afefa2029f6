// Functions of the command line for runs over several devices: they print figures of the ranks, and
// they run processes that mpirun or srun has started, each of which is a rank.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "nacre/cluster/mpi.h"
#include "nacre/train/vertex_model.h"

namespace nacre {
class BatchSession;
}

namespace nacre::cli {

// Returns the session of mini-batches on one device, or that of rank 0; null for the whole graph.
BatchSession* batches_of(VertexModel& session);
// Returns the device of a session, or the devices of its ranks as the user wrote them.
std::string device_text(const VertexModel& session);
// Returns the figures of all ranks for --json; null if there is one device.
nlohmann::ordered_json ranks_json(VertexModel& session);
// Returns which rows travel between ranks, and what other choices would cost, for --json; null if
// there is one device.
nlohmann::ordered_json halo_rows_json(VertexModel& session);
// Prints where the time of every rank went. Prints nothing if there is one device.
void say_ranks(VertexModel& session, bool json);

// In a process that MPI has not started, calls body(null). In a process that MPI has started, calls
// body(processes). If the body throws in one of these processes, or does not answer for `timeout`
// seconds, all of them end, and one of them prints the message.
void run_launched(double timeout, const std::function<void(MpiRanks*)>& body);
// Notes the rank of this process. If entries of --devices join devices by '+', splits the entries
// into devices and notes the process of each device. There must be an entry for each process, or
// one entry that all processes take; throws UserError otherwise.
void divide_devices(const MpiRanks& processes, RankOptions& ranks);
// Gives one process all devices of a run that several processes have begun.
void join_devices(RankOptions& ranks);
// Gives every process a device, if the user named none. divide_devices() must have been called.
// Throws UserError if the devices do not fit the processes. All processes call this at the same
// time.
void take_processes(MpiRanks& processes, RunConfig& config);
// Does the work of a process other than the first, until the first one has ended the run.
void follow_first(Dataset dataset, const RunConfig& config, const SessionNeeds& needs);

}  // namespace nacre::cli

// This file shares jobs out over machines of different speeds (DA4), so that the last machine ends
// early. Job j takes seconds[j] / speeds[i] on machine i. Schedules share out sampling with it: the
// jobs are batches, and the machines are samplers of the host and of devices.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace nacre {

struct MachineJobs {
  std::vector<int> machine;  // machine of each job
  std::vector<double> ends;  // time at which each machine ends
  double makespan = 0;
};

// Returns an assignment whose makespan is at most 1 + epsilon times the least one. This is the
// scheme of Horowitz and Sahni (1976): of the assignments of the first jobs that have nearly equal
// loads, only one is kept. The time grows with jobs · (2 · jobs / epsilon)^(machines - 1), so the
// function takes at most three machines. It throws InternalError for more.
MachineJobs share_jobs(std::span<const double> seconds, std::span<const double> speeds, double epsilon);

// Returns the assignment in which the longest job left always goes to the machine that ends it
// first. It takes any number of machines; its makespan is less than twice the least one, and it is
// the least one if all jobs are equal. `free` holds the time at which each machine has ended
// earlier work; if it is empty, all machines are free at time 0.
MachineJobs share_jobs_greedily(std::span<const double> seconds, std::span<const double> speeds,
                                std::span<const double> free = {});

// Returns a time that the makespan of no assignment can beat.
double least_makespan(std::span<const double> seconds, std::span<const double> speeds);

// MovingMedian predicts a value by the median of the last few observations. Without observations it
// predicts 0.
class MovingMedian {
 public:
  explicit MovingMedian(size_t window = 5) : window_(window) {}
  void observe(double value);
  bool knows_nothing() const { return last_.empty(); }
  double forecast() const;

 private:
  size_t window_;
  std::deque<double> last_;
};

}  // namespace nacre

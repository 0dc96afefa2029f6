// ThreadTeam: gives one thread of the program threads of its own for its parallel loops.
#pragma once

#include <memory>

namespace nacre {

class Arena;

// While this object lives, all parallel loops (parallel.h) that the thread which made it starts,
// and the loops inside them, use the threads of the team and no others. Each rank that computes on
// cores of the host has a team (train/rank_session.h), so that ranks neither share threads nor wait
// for them.
class ThreadTeam {
 public:
  // `threads` is the number of threads in the team, including the calling thread.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

 private:
  std::unique_ptr<Arena> arena_;
  Arena* before_;  // the team that the thread had before, or null
};

// Returns the threads of the team that the calling thread belongs to; null if it belongs to none.
Arena* current_team();

// Makes the calling thread a member of a team while this object lives. The team must outlive it.
class TeamMember {
 public:
  explicit TeamMember(Arena* team);
  ~TeamMember();
  TeamMember(const TeamMember&) = delete;
  TeamMember& operator=(const TeamMember&) = delete;

 private:
  Arena* before_;
};

}  // namespace nacre

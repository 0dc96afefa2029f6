// Pairs of users and items, as recommenders learn from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

struct Interactions {
  std::vector<NodeId> user;
  std::vector<NodeId> item;  // numbered from 0 like the users
  int64_t num_users = 0;
  int64_t num_items = 0;
  int64_t largest = -1;  // number of a user or item, and the line that names it
  int64_t line = 0;
};

// One graph of both kinds, edges both ways; `test` pairs are held out. `where` is for what is wrong with their numbers.
Dataset interactions_dataset(Interactions train, Interactions test, const std::string& where);

}  // namespace nacre

// Pairs of users and items, from which recommenders learn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

struct Interactions {
  std::vector<NodeId> user;
  std::vector<NodeId> item;  // items are numbered from 0, like users
  int64_t num_users = 0;
  int64_t num_items = 0;
  int64_t largest = -1;  // largest number of a user or item, and the line that names it
  int64_t line = 0;
};

// Makes one graph of both kinds, with edges both ways; the pairs of `test` are held out. Errors in
// the numbers name `where`. Numbers out of all proportion to the pairs are refused, unless they are
// `plausible` because the caller has checked them.
Dataset interactions_dataset(Interactions train, Interactions test, const std::string& where, bool plausible = false);

}  // namespace nacre

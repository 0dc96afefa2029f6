#include "spelling.h"

#include <algorithm>
#include <map>

namespace nacre::cli {

std::vector<std::string> spelled_our_way(std::vector<std::string> arguments) {
  static const std::map<std::string, std::string> same = {{"--dataset", "--data"},
                                                          {"--num-layers", "--layers"},
                                                          {"--hidden-channels", "--hidden"},
                                                          {"--num-hidden", "--hidden"},
                                                          {"--num-heads", "--heads"},
                                                          {"--wd", "--weight-decay"},
                                                          {"--learning-rate", "--lr"},
                                                          {"--num-epochs", "--epochs"},
                                                          {"--num-threads", "--threads"},
                                                          {"--aggregator-type", "--aggr"},
                                                          {"--aggregator", "--aggr"},
                                                          {"--num-rels", "--relations"},
                                                          {"--num-relations", "--relations"},
                                                          {"--vertices", "--nodes"}};
  for (std::string& word : arguments) {
    if (!word.starts_with("--")) continue;
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::replace(name.begin() + 2, name.end(), '_', '-');
    const auto known = same.find(name);
    if (known != same.end()) name = known->second;
    word.replace(0, equals, name);
  }
  return arguments;
}

}  // namespace nacre::cli

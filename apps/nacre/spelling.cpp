#include "spelling.h"

#include <algorithm>
#include <map>

namespace nacre::cli {

std::vector<std::string> spelled_our_way(int argc, char** argv) {
  static const std::map<std::string, std::string> same = {
      {"--dataset", "--data"},           {"--num-layers", "--layers"}, {"--hidden-channels", "--hidden"},
      {"--num-hidden", "--hidden"},      {"--num-heads", "--heads"},   {"--wd", "--weight-decay"},
      {"--learning-rate", "--lr"},       {"--num-epochs", "--epochs"}, {"--num-threads", "--threads"},
      {"--aggregator-type", "--aggr"},   {"--aggregator", "--aggr"},   {"--num-rels", "--relations"},
      {"--num-relations", "--relations"}};
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.starts_with("--")) {
      const size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      std::replace(name.begin() + 2, name.end(), '_', '-');
      const auto known = same.find(name);
      if (known != same.end()) name = known->second;
      word = equals == std::string::npos ? name : name + word.substr(equals);
    }
    arguments.push_back(std::move(word));
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace nacre::cli

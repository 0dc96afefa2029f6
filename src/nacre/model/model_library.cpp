#include "nacre/model/model_library.h"

namespace nacre {

const std::string& model_library_abi() {
  static const std::string abi = [] {
    std::string text = std::string("nacre ") + NACRE_VERSION + ", compiler " + std::to_string(__GXX_ABI_VERSION);
    for (const size_t size : {sizeof(ModelEntry), sizeof(ModelOptions), sizeof(Napa), sizeof(Dfg), sizeof(Node)})
      text += ", " + std::to_string(size);
    return text;
  }();
  return abi;
}

}  // namespace nacre

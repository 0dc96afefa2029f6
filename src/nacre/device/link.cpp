#include "nacre/device/link.h"

#include <cstdlib>

#include "nacre/base/error.h"
#include "nacre/base/plugin_library.h"
#include "nacre/device/link_abi.h"

namespace nacre {
namespace {

struct Opened {
  LinkPlugin* plugin = nullptr;
  std::string why;
};

Opened open_plugin() {
  const char* place = std::getenv("NACRE_PLUGIN_PATH");
  const PluginFunction found = open_plugin_function(kLinkPluginFile, kLinkPluginEntry, place != nullptr ? place : "");
  if (found.address == nullptr) return {nullptr, found.path.empty() ? "this build has no NCCL plug-in" : found.why};
  try {
    LinkPlugin* plugin = reinterpret_cast<LinkPluginEntry>(found.address)(kLinkAbi);
    if (plugin == nullptr) return {nullptr, found.path + " belongs to another version of nacre"};
    return {plugin, ""};
  } catch (const UserError& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace

LinkPlugin* link_plugin(std::string* why) {
  static const Opened opened = open_plugin();
  if (why != nullptr) *why = opened.why;
  return opened.plugin;
}

}  // namespace nacre

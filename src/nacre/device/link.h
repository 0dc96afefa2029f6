// DeviceLink: brings bytes from the memory of a GPU to that of a GPU of another process, without
// the host between them. A plug-in implements it with NCCL (src/nacre/nccl). It is a library of its
// own that is opened at run time, so programs need no NCCL to start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/device/device.h"

namespace nacre {

// Bytes in the memory of this rank's device that go to a peer or come from it.
struct LinkMessage {
  int peer = 0;
  void* memory = nullptr;
  int64_t bytes = 0;
};

// One rank's end of the connection. All ranks make the same calls of exchange() in the same order.
// One thread at a time makes them; abort() and error() may come from any thread.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;
  // Queues messages, at most one to each peer and one from each peer; a rank that sends bytes to a
  // peer must be a rank from which the peer receives as many. The messages begin after `ready`, a
  // point in the stream of the device, and run at the same time as work that is queued later.
  // Returns the point at which the messages have ended, for Device::wait_for(). Throws
  // RuntimeError.
  virtual DeviceEvent exchange(const std::vector<LinkMessage>& sends, const std::vector<LinkMessage>& receives,
                               const DeviceEvent& ready) = 0;
  // Returns a text that says what has failed since the connection was made; messages that take
  // longer than the timeout have failed, too. Returns an empty text if nothing has failed. The
  // caller asks several times a second.
  virtual std::string error() = 0;
  // Ends the messages that are under way, so that nobody waits for them any longer. The contents of
  // the memory that they would have written are undefined. Later calls of exchange() throw.
  virtual void abort() = 0;
};

// Says what connects this rank's end of a link: its GPU, and the name of the connection.
struct LinkPlace {
  int device = 0;  // number of the GPU in this machine
  int rank = 0;
  int size = 1;
  std::string id;       // the name that one rank got from LinkPlugin::new_id(), the same for all
  double timeout = 60;  // seconds that ranks wait for each other
};

class LinkPlugin {
 public:
  virtual ~LinkPlugin() = default;
  // Returns the version of NCCL. All ranks must have the same one.
  virtual std::string version() = 0;
  // Returns a text that identifies the GPU among the GPUs of all machines.
  virtual std::string uuid(int device) = 0;
  // Returns a name for a new connection. One rank makes it and tells the others.
  virtual std::string new_id() = 0;
  // Connects this rank with all others, which call this function at the same time. Throws
  // RuntimeError.
  virtual std::unique_ptr<DeviceLink> connect(const LinkPlace& place) = 0;
};

// Opens the plug-in beside the program, in ../lib, or where NACRE_PLUGIN_PATH says. Returns the
// same object every time. Returns null and puts the reason into *why if GPUs cannot be linked here:
// the plug-in was not built, belongs to another version, or finds no NCCL.
LinkPlugin* link_plugin(std::string* why = nullptr);

}  // namespace nacre

#include "nacre/cluster/call_kind.h"

namespace nacre {

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::exchange:
      return "exchange";
    case CallKind::all_reduce:
      return "all_reduce";
    case CallKind::gather:
      return "gather";
  }
  return "";
}

}  // namespace nacre

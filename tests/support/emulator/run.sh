#!/bin/sh
# run.sh SHARE PROGRAM [argument ...]: runs a test program on the emulated device: every SHARE-th of its tests, or all of them
# where NACRE_EMULATE_ALL is set (make emulate).
share=$1
shift
if [ -z "${NACRE_EMULATE_ALL:-}" ]; then
  GTEST_TOTAL_SHARDS=$share
  GTEST_SHARD_INDEX=0
  export GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX
fi
exec "$@"

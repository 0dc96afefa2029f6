#!/bin/sh
# run.sh PROGRAM [argument ...]: runs a program that was built with the thread sanitizer. The exit
# status is 66 if the sanitizer had something to report, however the program itself ended.
TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
export TSAN_OPTIONS
# The sanitizer of g++ 12 cannot start where the system places programs at addresses that are too
# random; they are not random for programs behind setarch, where the system allows it.
if setarch -R true 2>/dev/null; then exec setarch -R "$@"; fi
exec "$@"

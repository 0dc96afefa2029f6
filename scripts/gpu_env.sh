# To be sourced from the folder of a bundle (make gpu-bundle): lets its programs find their
# libraries.
bundle_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$bundle_folder/lib"
# The C++ library of the machine is used unless it is too old, because other libraries of the
# machine may need a newer one than ours.
if ! "$bundle_folder/nacre" --version >/dev/null 2>&1; then
  LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$bundle_folder/lib/cxx"
fi
unset bundle_folder

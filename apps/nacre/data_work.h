// Declares the functions that do the work of the subcommands of `nacre data`; data.cpp describes
// their options.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"
#include "nacre/data/sizes.h"
#include "nacre/train/config.h"

namespace nacre::cli {

struct DataCommand {
  RunConfig config;  // the source and how to read it
  std::string output;
  bool json = false;
  bool memory_given = false;  // whether --memory was given
  bool force = false;         // replace an output that already exists
  bool sizes = false;         // print the sizes from the headers only
  ConvertOptions convert;
  std::string reorder = "none";
  std::string feature_dtype = "f32";
  std::string layout = "npz";
};

void list_twins();
void make_data(DataCommand& c);
void convert_data(DataCommand& c);
void verify_data(const DataCommand& c);
void describe_data(const DataCommand& c);
// Prints what the headers of the data say, so that data that are too large to read can be
// described, too.
void describe_sizes(const DataCommand& c, const DataSizes& sizes);
void export_data(const DataCommand& c);

}  // namespace nacre::cli

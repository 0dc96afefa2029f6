// Checks and applies the options that say in which type features are stored and where their rows
// lie.
#pragma once

#include <string>

#include "nacre/data/dataset.h"
#include "nacre/tensor/dtype.h"
#include "nacre/train/config.h"

namespace nacre {

// Returns the type with this name. Throws UserError unless the name is f32, bf16 or f16.
DType feature_type(const std::string& name);
// Throws UserError if --feature-type, --feature-budget, --placement, --cache or --host-rows has an
// unknown value, or if one of them contradicts --features-on, --host-budget or another option.
void check_feature_options(const RunConfig& config);
// Throws UserError if an option is given that works for one table of features, but not for several
// kinds of vertices with tables of their own.
void check_kind_options(const RunConfig& config);
// Throws the UserError for --features-on host in a run whose features are all learned.
[[noreturn]] void refuse_learned_on_host();
// Converts the features of the data set to the type that --feature-type names. If `keep_f32`, they
// stay f32, but are rounded to the values of that type.
void store_features(const RunConfig& config, Dataset& dataset, bool keep_f32);

}  // namespace nacre

// Includes everything that a program needs if it uses Nacre as a library: data, models, training,
// prediction, messages. docs/library.md has a complete program.
#pragma once

#include "nacre/base/error.h"           // UserError, RuntimeError
#include "nacre/base/log.h"             // LogSink, set_log_sink
#include "nacre/base/parallel.h"        // set_num_threads
#include "nacre/base/warnings.h"        // warnings_so_far
#include "nacre/data/dataset.h"         // Dataset, Splits
#include "nacre/data/load.h"            // load_dataset, LoadOptions
#include "nacre/graph/graph.h"          // Graph, EdgeList, build_graph
#include "nacre/graph/stats.h"          // compute_stats
#include "nacre/model/stack.h"          // Napa, RegisterModel, stack_layers: to write models
#include "nacre/train/config.h"         // RunConfig
#include "nacre/train/recommend.h"      // data, models and training of recommenders
#include "nacre/train/trained_model.h"  // read_trained_model
#include "nacre/train/trainer.h"        // train, TrainerOptions, EpochReport, TrainResult
#include "nacre/train/vertex_model.h"   // make_session, VertexModel

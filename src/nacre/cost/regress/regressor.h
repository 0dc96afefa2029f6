// Regressors learn a number from the features of samples (NU2). They are small, deterministic by
// their seed, and can be written as JSON. The performance model (cost/performance_model.h) compares
// them and keeps the best one.
//
//   linear             least squares; of several solutions the shortest one
//   ridge              least squares with a penalty on squared weights, chosen by cross-validation
//   lasso              least squares with a penalty on absolute weights, chosen by cross-validation
//   svr                support vector regression with a Gaussian kernel
//   decision-tree      one regression tree (CART)
//   bagging            trees on bootstrap samples, averaged
//   random-forest      bagging whose splits see a random third of the features
//   adaboost           AdaBoost.R2: trees on samples that earlier trees got wrong
//   gradient-boosting  shallow trees, each on the errors of those before it
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/cost/regress/samples.h"

namespace nacre {

// A NumberLists holds what a fitted regressor consists of, as lists of numbers by name.
using NumberLists = std::map<std::string, std::vector<double>>;

class Regressor {
 public:
  virtual ~Regressor() = default;
  virtual std::string_view name() const = 0;
  // Learns from at least one sample; all numbers must be finite.
  virtual void fit(const SampleTable& samples) = 0;
  // Predicts the target of a sample with as many features as those that the regressor learned from.
  virtual double predict(std::span<const double> features) const = 0;
  // Returns the number of features; 0 before fit().
  virtual int64_t columns() const = 0;

  virtual NumberLists state() const = 0;
  // Takes what state() of a fitted regressor returned. Throws a UserError that names `where` if the
  // lists cannot be such a state.
  virtual void restore(const NumberLists& state, const std::string& where) = 0;
};

std::vector<std::string> regressor_names();
// Returns a new regressor of this name. Throws UserError if there is none of this name.
std::unique_ptr<Regressor> make_regressor(const std::string& name, uint64_t seed = 0);

// Returns {"regressor": NAME, "state": {LIST: [numbers], …}} as text, in which numbers keep their
// bits.
std::string regressor_json(const Regressor& regressor);
// Returns the regressor that the text holds. Throws a UserError that names `where` if it holds
// none.
std::unique_ptr<Regressor> parse_regressor(const std::string& json, const std::string& where);

// ---- The functions below are for implementations of regressors.

// Returns a list of the state. Throws a UserError that names `where` if the list is absent or does
// not have `size` numbers. If `size` is negative, any number of numbers will do.
const std::vector<double>& state_list(const NumberLists& state, const std::string& list, int64_t size,
                                      const std::string& where);

std::unique_ptr<Regressor> make_linear();
std::unique_ptr<Regressor> make_ridge();
std::unique_ptr<Regressor> make_lasso();
std::unique_ptr<Regressor> make_svr();
std::unique_ptr<Regressor> make_decision_tree();
std::unique_ptr<Regressor> make_bagging(uint64_t seed);
std::unique_ptr<Regressor> make_random_forest(uint64_t seed);
std::unique_ptr<Regressor> make_adaboost(uint64_t seed);
std::unique_ptr<Regressor> make_gradient_boosting(uint64_t seed);

}  // namespace nacre

// Loads models from files that are named when the program runs: shared libraries, and files written
// in Python.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace nacre {

// Returns whether the text names a file of models. Such a text is a path that ends in .so or .py,
// perhaps with a colon and the name of one of the file's models behind it (my_model.py:gated_mean).
bool names_model_file(const std::string& text);

// Loads the file that the text names, and returns the name of its model. A shared library is loaded
// once; a Python file is run again each time, because it may have changed. Throws UserError if the
// file cannot be loaded, or if it has several models and the text does not say which.
std::string load_model_file(const std::string& text);

// Returns the text with which load_model_file() finds a registered model again, or an empty text if
// no file is known that the model came from.
std::string file_of_model(const std::string& model);
// Records the text that names the file that a registered model came from.
void set_file_of_model(const std::string& model, const std::string& text);

// PythonModels is a function that runs a Python file and returns the names of the models in it.
// These models must be in the registry afterwards.
using PythonModels = std::function<std::vector<std::string>(const std::string& path)>;
// Sets how Python files are run. If this is not set, load_model_file() refuses Python files.
void set_python_models(PythonModels run);

}  // namespace nacre

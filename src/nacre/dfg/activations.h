// This table defines the functions of one element and their gradients. A row of the table is all
// that planning, differentiation, the reference, the writers of CUDA source and the command line
// know of a function. The CPU's vector form stands in kernel/cpu/micro_ops.cpp under the same name.
// docs/add_an_op.md says how to add a function.
//
// X(NAME, ALPHA, READS, VALUE, GRADIENT, CUDA_VALUE, CUDA_GRADIENT) defines two operations, NAME
// and
// NAME_grad:
//
//   ALPHA          the number alpha where a model gives only the name; kNoAlpha: there is none
//   READS          output: the gradient's y is the result of NAME; input: y is the operand x
//   VALUE          C++ expression of the doubles x and alpha
//   GRADIENT       C++ expression of the doubles g, y and alpha: g times the derivative
//   CUDA_VALUE     CUDA text of VALUE; $x stands for the operand, $a for alpha
//   CUDA_GRADIENT  CUDA text of GRADIENT; $g and $y stand for the operands, $a for alpha
#pragma once

// clang-format off
#define NACRE_ACTIVATIONS(X)                                                        \
  X(relu, kNoAlpha, output, x > 0 ? x : 0, y > 0 ? g : 0,                           \
    "fmaxf($x, 0.0f)", "$y > 0.0f ? $g : 0.0f")                                     \
  X(leaky_relu, 0.01, output, x > 0 ? x : alpha * x, y > 0 ? g : alpha * g,         \
    "$x > 0.0f ? $x : $a * $x", "$y > 0.0f ? $g : $a * $g")                         \
  X(elu, 1.0, output, x > 0 ? x : alpha * std::expm1(x), y > 0 ? g : g * (y + alpha), \
    "$x > 0.0f ? $x : $a * expm1f($x)", "$y > 0.0f ? $g : $g * ($y + $a)")          \
  X(sigmoid, kNoAlpha, output, 1 / (1 + std::exp(-x)), g * y * (1 - y),             \
    "1.0f / (1.0f + expf(-$x))", "$g * $y * (1.0f - $y)")                           \
  X(tanh, kNoAlpha, output, std::tanh(x), g * (1 - y * y),                          \
    "tanhf($x)", "$g * (1.0f - $y * $y)")
// clang-format on

# SPDX-License-Identifier: Apache-2.0
# CELLGATE_CUDA: the plugin for NVIDIA GPUs needs the toolkit to build: nvcc, the
# runtime as a static library, and the headers. cuDNN is opened when it runs.

# _CELLGATE_CUDA_FIND: the toolkit's folder, from --with-cuda=DIR, $CUDA_HOME, nvcc
# in PATH, or where it is installed to.
AC_DEFUN([_CELLGATE_CUDA_FIND], [
  cellgate_cuda_dir=$cellgate_cuda_given
  AS_IF([test -z "$cellgate_cuda_dir" && test -x "$CUDA_HOME/bin/nvcc"],
    [cellgate_cuda_dir=$CUDA_HOME])
  AS_IF([test -z "$cellgate_cuda_dir"], [
    AC_PATH_PROG([cellgate_cuda_nvcc], [nvcc])
    cellgate_cuda_dir=`echo "$cellgate_cuda_nvcc" | sed 's,/bin/nvcc$,,'`
  ])
  AS_IF([test -z "$cellgate_cuda_dir"], [cellgate_cuda_dir=/usr/local/cuda])
  NVCC=$cellgate_cuda_dir/bin/nvcc
  cellgate_cuda_lib=$cellgate_cuda_dir/lib64
  AS_IF([test -d "$cellgate_cuda_lib"], [], [cellgate_cuda_lib=$cellgate_cuda_dir/lib])
])

# _CELLGATE_CUDA_ARCHES: --with-cuda-arch, numbers such as 75,90. Code for each,
# and PTX of the last, which newer devices compile themselves.
AC_DEFUN([_CELLGATE_CUDA_ARCHES], [
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
      [compute capabilities to build CUDA kernels for (default: 75,80,86,89,90,100)])],
    [], [with_cuda_arch=75,80,86,89,90,100])
  CUDA_ARCHFLAGS=
  cellgate_cuda_least=
  cellgate_cuda_most=
  for cellgate_arch in `echo "$with_cuda_arch" | tr ',' '\n' | sort -n`; do
    AS_CASE([$cellgate_arch], [[[0-9][0-9]|[0-9][0-9][0-9]]], [],
      [AC_MSG_ERROR([--with-cuda-arch takes numbers such as 75,90, not "$with_cuda_arch"])])
    AS_IF([test -z "$cellgate_cuda_least"], [cellgate_cuda_least=$cellgate_arch])
    cellgate_cuda_most=$cellgate_arch
    CUDA_ARCHFLAGS="$CUDA_ARCHFLAGS -gencode arch=compute_$cellgate_arch,code=sm_$cellgate_arch"
  done
  AS_IF([test -z "$cellgate_cuda_least"],
    [AC_MSG_ERROR([--with-cuda-arch takes numbers such as 75,90, not "$with_cuda_arch"])])
  CUDA_ARCHFLAGS="$CUDA_ARCHFLAGS -gencode arch=compute_$cellgate_cuda_most,code=compute_$cellgate_cuda_most"
  AC_SUBST([CUDA_ARCHFLAGS])
  AC_DEFINE_UNQUOTED([CUDA_ARCH_LEAST], [$cellgate_cuda_least],
    [Least compute capability that CUDA kernels are built for, times 10])
])

# _CELLGATE_CUDA_CHECK: sets cellgate_have_cuda, or why not.
AC_DEFUN([_CELLGATE_CUDA_CHECK], [
  cellgate_saved_CPPFLAGS=$CPPFLAGS
  cellgate_saved_LIBS=$LIBS
  CUDA_CPPFLAGS="-isystem $cellgate_cuda_dir/include"
  CUDA_LIBS="-L$cellgate_cuda_lib -lcudart_static -ldl -lrt -lpthread"
  CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
  AS_IF([test ! -x "$NVCC"],
    [cellgate_why_cuda="no nvcc in PATH or in $cellgate_cuda_dir/bin (install the CUDA toolkit 13, or name its folder: --with-cuda=DIR)"],
    [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <cuda_runtime_api.h>
#if CUDART_VERSION < 13000
#error older than 13
#endif
    ]])],
      [AC_CHECK_HEADER([cublasLt.h], [
        AC_CHECK_LIB([cudart_static], [cudaGetDeviceCount],
          [cellgate_have_cuda=yes],
          [cellgate_why_cuda="libcudart_static.a of $cellgate_cuda_dir does not link"],
          [-L$cellgate_cuda_lib -ldl -lrt -lpthread])],
        [cellgate_why_cuda="cublasLt.h was not found (it is part of the toolkit)"])],
      [cellgate_why_cuda="the toolkit of $cellgate_cuda_dir has no cuda_runtime_api.h of version 13"])])
  AC_CHECK_HEADER([cudnn.h], [cellgate_have_cudnn_header=yes],
    [cellgate_have_cudnn_header=no])
  CPPFLAGS=$cellgate_saved_CPPFLAGS
  LIBS=$cellgate_saved_LIBS
])

AC_DEFUN([CELLGATE_CUDA], [
  cellgate_cuda_given=
  AS_CASE([$with_cuda], [/*], [cellgate_cuda_given=$with_cuda; with_cuda=yes])
  CELLGATE_WITH([cuda], [build the CUDA plugin, with the toolkit of a folder], [
    _CELLGATE_CUDA_FIND
    _CELLGATE_CUDA_CHECK
  ], [yes|no|auto|DIR])
  AS_IF([test "x$cellgate_have_cuda" = xyes], [_CELLGATE_CUDA_ARCHES])
  AM_CONDITIONAL([HAVE_CUDNN_HEADER],
    [test "x$cellgate_have_cuda" = xyes && test "x$cellgate_have_cudnn_header" = xyes])
  NVCC_WARNFLAGS=
  AS_IF([test "x$enable_werror" = xyes],
    [NVCC_WARNFLAGS="-Werror all-warnings"])
  AC_SUBST([NVCC_WARNFLAGS])
  AC_ARG_VAR([NVCCFLAGS], [more flags for nvcc])
  AC_SUBST([NVCC])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
])

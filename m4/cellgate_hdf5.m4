# SPDX-License-Identifier: Apache-2.0
# CELLGATE_HDF5: the weights inside Keras files. The plain C interface only.
AC_DEFUN([CELLGATE_HDF5], [
  CELLGATE_WITH([hdf5], [read Keras files], [
    PKG_CHECK_MODULES([HDF5], [hdf5], [cellgate_have_hdf5=yes],
      [cellgate_why_hdf5="HDF5 was not found (on Debian: apt-get install libhdf5-dev)"])
    AS_IF([test "x$cellgate_have_hdf5" = xyes], [
      cellgate_saved_CPPFLAGS=$CPPFLAGS
      CPPFLAGS="$CPPFLAGS $HDF5_CFLAGS"
      AC_CHECK_HEADER([hdf5.h], [],
        [cellgate_have_hdf5=no
         cellgate_why_hdf5="HDF5 is there, but hdf5.h does not compile"])
      CPPFLAGS=$cellgate_saved_CPPFLAGS
    ])
  ])
])

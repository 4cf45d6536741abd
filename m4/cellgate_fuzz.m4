# SPDX-License-Identifier: Apache-2.0

# CELLGATE_FUZZ
# -------------
# --enable-fuzz builds everything instrumented for libFuzzer, with the address
# and undefined-behaviour sanitizers, and links tests/fuzz/fuzz_* with libFuzzer;
# needs clang. `make fuzz` configures such a build for itself. Without it those
# programs replay their corpora. Sets the automake conditional FUZZ.
AC_DEFUN([CELLGATE_FUZZ], [
  AC_ARG_ENABLE([fuzz],
    [AS_HELP_STRING([--enable-fuzz], [link the fuzz targets with libFuzzer])])
  AS_IF([test "x$enable_fuzz" = xyes], [
    CFLAGS="$CFLAGS -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    LDFLAGS="$LDFLAGS -fsanitize=address,undefined"
    cellgate_saved_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -fsanitize=fuzzer"
    AC_MSG_CHECKING([for libFuzzer])
    AC_LINK_IFELSE([AC_LANG_SOURCE([
        int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size);
        int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size)
        { return data != 0 && size == 0; }])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([--enable-fuzz needs clang with libFuzzer (on Debian: apt-get install clang, then CC=clang)])])
    LDFLAGS=$cellgate_saved_LDFLAGS
  ])
  AM_CONDITIONAL([FUZZ], [test "x$enable_fuzz" = xyes])
])

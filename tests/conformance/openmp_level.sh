# SPDX-License-Identifier: Apache-2.0
# Read by openmp_LEVEL.sh: the conformance suite on the OpenMP plugin at one
# level. $level is the level, $flags the features that the CPU must have for it.

for flag in $flags; do
  grep -qw "$flag" /proc/cpuinfo || {
    echo "this CPU has no $flag"
    exit 77
  }
done
# conform ARGUMENT...: not into a pipe, since the exit status counts.
conform() {
  ./cellgate-conform ${CONFORM_MODE:---quick} --set level="$level" "$@" \
    .libs/openmp.so >"conform-$level.out" 2>&1
  status=$?
  cat "conform-$level.out"
}
# All of it on the best level of this machine; on the others what they do not
# share with it.
best=scalar
! grep -qw avx2 /proc/cpuinfo || best=avx2
! { grep -qw avx512f /proc/cpuinfo && grep -qw avx512dq /proc/cpuinfo; } ||
  best=avx512
threaded=no
case " ${CFLAGS-} " in *-fsanitize=thread*) threaded=yes ;; esac
if [ $threaded = yes ] && [ -z "${CONFORM_MODE-}" ]; then
  # Threads meet in the same way in every case.
  conform --filter threads
  [ "$status" -ne 0 ] || [ "$level" != "$best" ] || conform --filter plans
elif [ "$level" != "$best" ] && [ -z "${CONFORM_MODE-}" ]; then
  conform --variant t1
  [ "$status" -ne 0 ] || conform --filter shapes
else
  conform
fi
# A build without the level does not list it among its key's choices.
if [ "$status" -eq 2 ] &&
  grep -q "^'$level' is no value for level" "conform-$level.out"; then
  status=77
fi
rm -f "conform-$level.out"
exit "$status"

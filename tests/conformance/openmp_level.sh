# SPDX-License-Identifier: Apache-2.0
# Read by openmp_LEVEL.sh: the conformance suite on the OpenMP plugin at one
# level. $level is the level, $flags the features that the CPU must have for it.

for flag in $flags; do
  grep -qw "$flag" /proc/cpuinfo || {
    echo "this CPU has no $flag"
    exit 77
  }
done
# conform ARGUMENT...: not into a pipe, since the exit status counts. After a run
# that failed it does nothing.
status=0
conform() {
  [ "$status" -eq 0 ] || return 0
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
case " ${CFLAGS-} " in
*-fsanitize=thread*) built=threads ;;
*-fsanitize*) built=instrumented ;;
*) built=plain ;;
esac
# Threads share the work in the same way whatever the attributes are, and beside
# another test each of their steps waits for a turn: one thread tries it all.
case ${CONFORM_MODE:+full} in
full) conform ;;
*)
  if [ $built = threads ]; then
    # Threads meet in the same way in every case.
    conform --filter threads
    [ "$level" != "$best" ] || conform --filter plans
  elif [ "$level" = "$best" ]; then
    if [ $built = plain ]; then
      conform --threads 1
    else
      conform --threads 1 --filter '^(shapes|lengths|layouts|attributes|ops|chains|bounds|plans|lifecycle)$'
    fi
    conform --filter '^(layouts|plans|threads|bounds|shapes: batch=(1|2|7|3.|6.) |chains: batch=5 )'
  elif [ $built = plain ]; then
    conform --variant t1
    conform --threads 1 --filter shapes
  else
    conform --variant t1 --filter '^(shapes|attributes|chains|bounds|plans)$'
    conform --variant t1-f16 --filter bounds
    conform --variant t1-int8 --filter bounds
  fi
  ;;
esac
# A build without the level does not list it among its key's choices.
if [ "$status" -eq 2 ] &&
  grep -q "^'$level' is no value for level" "conform-$level.out"; then
  status=77
fi
rm -f "conform-$level.out"
exit "$status"

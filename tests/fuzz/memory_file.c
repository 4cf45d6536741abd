/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"

const char *memory_file(const void *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    size_t done = 0;

    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC);
        FUZZ_REQUIRE(fd >= 0);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    FUZZ_REQUIRE(ftruncate(fd, 0) == 0);
    while (done < size) {
        const ssize_t written =
            pwrite(fd, (const char *)data + done, size - done, (off_t)done);

        FUZZ_REQUIRE(written > 0);
        done += (size_t)written;
    }
    return path;
}

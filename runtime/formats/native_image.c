/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a native file: mapped, or read where a mapping is not safe. */
#include "config.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cellgate/plugin.h"
#include "runtime/formats/native.h"

/*
 * File systems whose files another machine or a program may change or take
 * away, by the magic numbers of statfs(2): touching a mapped page that is gone
 * ends the process with SIGBUS.
 */
static const uint32_t remote_types[] = {
    0x6969u,     /* NFS */
    0x517bu,     /* SMB */
    0xfe534d42u, /* SMB 2 */
    0xff534d42u, /* CIFS */
    0x65735546u, /* FUSE: sshfs, s3fs, GlusterFS */
    0x01021997u, /* 9P */
    0x5346414fu, /* AFS */
    0x6b414653u, /* kAFS */
    0x00c36400u, /* Ceph */
    0x0bd00bd0u, /* Lustre */
    0x47504653u, /* GPFS */
    0x19830326u, /* BeeGFS */
};

bool cg_native_is_remote(uint32_t type)
{
    for (size_t i = 0; i < sizeof remote_types / sizeof remote_types[0]; i++)
        if (remote_types[i] == type)
            return true;
    return false;
}

static bool lies_remote(int fd)
{
    struct statfs about;

    return fstatfs(fd, &about) == 0 &&
           cg_native_is_remote((uint32_t)about.f_type);
}

static cellgate_status read_all(int fd, char *image, size_t size,
                                cellgate_error *error)
{
    size_t done = 0;

    while (done < size) {
        const ssize_t got = pread(fd, image + done, size - done, (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cellgate_fail(error, CELLGATE_IO, "cannot be read: %s",
                                 strerror(errno));
        if (got == 0)
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "the file was cut while it was read");
        done += (size_t)got;
    }
    return CELLGATE_OK;
}

/* In anonymous memory, so that both kinds of image end with munmap(). */
cellgate_status cg_native_copy(int fd, size_t size, void **image,
                               cellgate_error *error)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cellgate_status status;

    if (memory == MAP_FAILED)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for the file's %zu bytes", size);
    status = read_all(fd, memory, size, error);
    if (status == CELLGATE_OK) {
        (void)mprotect(memory, size, PROT_READ);
        *image = memory;
    } else {
        (void)munmap(memory, size);
    }
    return status;
}

cellgate_status cg_native_image(int fd, size_t size, void **image,
                                cellgate_error *error)
{
    void *mapped;

    if (lies_remote(fd))
        return cg_native_copy(fd, size, image, error);
    mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED)
        return cellgate_fail(error, CELLGATE_IO, "cannot be mapped: %s",
                             strerror(errno));
    *image = mapped;
    return CELLGATE_OK;
}

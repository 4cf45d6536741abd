/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>

#include "plugins/cuda/cudnn_api.h"

#define LIBRARY "libcudnn.so.9"
#define REMEDY                                                                 \
    "install cuDNN 9 for CUDA 13 where the system finds it, or name the "      \
    "file: cudnn = /path/libcudnn.so.9"

__attribute__((format(printf, 2, 3))) static void lack(struct cud_cudnn *cudnn,
                                                       const char *format, ...)
{
    va_list arguments;

    cudnn->version = 0;
    va_start(arguments, format);
    (void)vsnprintf(cudnn->lacks, sizeof cudnn->lacks, format, arguments);
    va_end(arguments);
}

static bool find_function(struct cud_cudnn *cudnn, const char *name, void *to)
{
    void *found = dlsym(cudnn->library, name);

    if (!found) {
        lack(cudnn, "cuDNN %d.%d is too old or damaged: it has no %s; " REMEDY,
             cudnn->version / 10000, cudnn->version / 100 % 100, name);
        return false;
    }
    memcpy(to, &found, sizeof found);
    return true;
}

static bool find_version(struct cud_cudnn *cudnn, const char *path)
{
    if (!find_function(cudnn, "cudnnGetVersion", &cudnn->GetVersion))
        return false;
    cudnn->version = (int)cudnn->GetVersion();
    if (cudnn->version / 10000 == CUD_CUDNN_MAJOR)
        return true;
    /* Up to 8 the number has one digit less for the major version. */
    lack(cudnn, "%.100s is cuDNN %d, and version %d is needed; " REMEDY, path,
         cudnn->version / (cudnn->version < 10000 ? 1000 : 10000),
         CUD_CUDNN_MAJOR);
    return false;
}

void cud_cudnn_load(struct cud_cudnn *cudnn, const char *path)
{
    bool found;

    memset(cudnn, 0, sizeof *cudnn);
    if (strcmp(path, "none") == 0) {
        lack(cudnn, "a setting excludes cuDNN (cudnn = none)");
        return;
    }
    if (path[0] == '\0')
        path = LIBRARY;
    cudnn->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!cudnn->library) {
        lack(cudnn, "cuDNN was not found (%.120s); " REMEDY, dlerror());
        return;
    }
    found = find_version(cudnn, path);
#define CUD_CUDNN_FIND(name, result, parameters)                               \
    found = found && find_function(cudnn, "cudnn" #name, &cudnn->name);
    CUD_CUDNN_FUNCTION_LIST(CUD_CUDNN_FIND)
#undef CUD_CUDNN_FIND
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals.c: what turned out not to run. cuDNN says of some layers and shapes
 * only when they run that it does not have them, and not always by
 * NOT_SUPPORTED. As long as a variant has run nothing, what fails is the
 * variant's fault, and is refused at that shape; then it is the device's.
 */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/plan.h"

/* Shapes that are kept of one variant and layers; then the oldest is tried
   again. */
#define SHAPES_MOST 32

struct cud_refusal {
    struct cud_refusal *next;
    uint64_t digest; /* of the layers */
    uint64_t variant;
    int64_t batch, steps; /* ANY: any */
    char text[160];
};
#define ANY (-1)

bool cud_concerns_all(cellgate_status status)
{
    return status == CELLGATE_DEVICE_LOST || status == CELLGATE_DEVICE_MEMORY ||
           status == CELLGATE_NO_MEMORY;
}

/* ---- The list ---------------------------------------------------------- */

static bool is_of(const struct cud_refusal *at, uint64_t digest, uint64_t id)
{
    return at->digest == digest && at->variant == id;
}

/* The one that says so, at this shape or at any; under the lock. */
static const struct cud_refusal *find(const cellgate_device *device,
                                      uint64_t digest, uint64_t id,
                                      const cellgate_shape *shape)
{
    const struct cud_refusal *at;

    for (at = device->refusals; at; at = at->next)
        if (is_of(at, digest, id) &&
            (at->batch == ANY ||
             (shape && shape->batch == at->batch && shape->steps == at->steps)))
            break;
    return at;
}

bool cud_variant_refused(cellgate_device *device, uint64_t digest, uint64_t id,
                         const cellgate_shape *shape, char why[160])
{
    const struct cud_refusal *at;

    (void)pthread_mutex_lock(&device->lock);
    at = find(device, digest, id, shape);
    if (at)
        memcpy(why, at->text, sizeof at->text);
    (void)pthread_mutex_unlock(&device->lock);
    return at != NULL;
}

/* Takes the oldest of too many out of the list; the newest come first. */
static struct cud_refusal *take_oldest(cellgate_device *device, uint64_t digest,
                                       uint64_t id)
{
    struct cud_refusal **at, **oldest = NULL, *taken = NULL;
    int count = 0;

    for (at = &device->refusals; *at; at = &(*at)->next)
        if (is_of(*at, digest, id) && (*at)->batch != ANY) {
            oldest = at;
            count++;
        }
    if (count >= SHAPES_MOST) {
        taken = *oldest;
        *oldest = taken->next;
    }
    return taken;
}

static void say(const cellgate_device *device, cellgate_log_level level,
                uint64_t id, const cellgate_shape *shape, const char *why)
{
    char at[60] = "", line[300];

    if (shape)
        (void)snprintf(at, sizeof at, " at batch %lld, steps %lld",
                       (long long)shape->batch, (long long)shape->steps);
    (void)snprintf(line, sizeof line, "variant %s is left out%s: %.180s",
                   cud_variant_at(id)->name, at, why);
    device->host->log(device->host->context, (int32_t)level, line);
}

/* Puts it in front, unless the list says so already: then false. What is taken
   out for it, or is not needed, is left in *unused. */
static bool put(cellgate_device *device, struct cud_refusal *made,
                const cellgate_shape *shape, struct cud_refusal **unused)
{
    const uint64_t digest = made->digest, id = made->variant;
    bool is_new;

    (void)pthread_mutex_lock(&device->lock);
    is_new = !find(device, digest, id, shape);
    *unused = !is_new ? made : shape ? take_oldest(device, digest, id) : NULL;
    if (is_new) {
        made->next = device->refusals;
        device->refusals = made;
    }
    (void)pthread_mutex_unlock(&device->lock);
    return is_new;
}

/* Whether it was not known. */
static bool add(cellgate_device *device, uint64_t digest, uint64_t id,
                const cellgate_shape *shape, const char *why)
{
    struct cud_refusal *made = calloc(1, sizeof *made), *unused;
    bool is_new;

    if (!made)
        return true; /* it is told, though it cannot be kept */
    made->digest = digest;
    made->variant = id;
    made->batch = shape ? shape->batch : ANY;
    made->steps = shape ? shape->steps : ANY;
    (void)snprintf(made->text, sizeof made->text, "%.159s", why);
    is_new = put(device, made, shape, &unused);
    free(unused);
    return is_new;
}

void cud_refuse_variant(cellgate_device *device, uint64_t digest, uint64_t id,
                        const char *why)
{
    if (add(device, digest, id, NULL, why))
        say(device, CELLGATE_LOG_WARNING, id, NULL, why);
}

cellgate_status cud_refuse_fused(cellgate_device *device, uint64_t digest,
                                 cellgate_error *error)
{
    bool is_new = false;
    char line[300];
    uint64_t id;

    for (id = 0; cud_variant_at(id); id++)
        if (cud_variant_at(id)->way == CUD_FUSED &&
            add(device, digest, id, NULL, error->text))
            is_new = true;
    (void)snprintf(line, sizeof line, "no LSTM of this kind is fused: %.240s",
                   error->text);
    if (is_new)
        device->host->log(device->host->context, CELLGATE_LOG_WARNING, line);
    error->status = CELLGATE_UNSUPPORTED;
    error->reason = CELLGATE_REASON_DEVICE;
    return CELLGATE_UNSUPPORTED;
}

void cud_refusals_free(cellgate_device *device)
{
    while (device->refusals) {
        struct cud_refusal *first = device->refusals;

        device->refusals = first->next;
        free(first);
    }
}

/* ---- Of a plan --------------------------------------------------------- */

static uint64_t id_of(const struct cellgate_plan *plan)
{
    return (uint64_t)(plan->variant - cud_variant_at(0));
}

cellgate_status cud_plan_failed(const struct cellgate_plan *plan,
                                const cellgate_shape *shape,
                                cellgate_status status, cellgate_error *error)
{
    const uint64_t bit = (uint64_t)1 << id_of(plan);

    if (plan->lacks_weights || cud_concerns_all(status) ||
        atomic_load(&plan->device->lost) ||
        (status != CELLGATE_UNSUPPORTED &&
         (atomic_load(&plan->weights->proved) & bit)))
        return status;
    if (add(plan->device, plan->weights->digest, id_of(plan), shape,
            error->text))
        say(plan->device,
            status == CELLGATE_UNSUPPORTED ? CELLGATE_LOG_INFO
                                           : CELLGATE_LOG_WARNING,
            id_of(plan), shape, error->text);
    if (status != CELLGATE_UNSUPPORTED)
        error->reason = CELLGATE_REASON_OTHER;
    error->status = CELLGATE_UNSUPPORTED;
    return CELLGATE_UNSUPPORTED;
}

void cud_plan_ran(struct cellgate_plan *plan)
{
    /* Without steps nothing ran, and rows of several lengths are the standard
       algorithm's. */
    if (plan->span == 0)
        return;
    if (!plan->ragged || plan->variant->way != CUD_FUSED ||
        plan->variant->algorithm == CUD_RNN_ALGO_STANDARD)
        (void)atomic_fetch_or(&plan->weights->proved,
                              (uint64_t)1 << id_of(plan));
}

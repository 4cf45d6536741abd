/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of reading models of every family of layers fails once: the
 * status is NO_MEMORY, and nothing stays behind.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cellgate/cellgate.h"
#include "tests/unit/fail_allocation.h"

static cellgate_status load(void *path)
{
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, NULL);

    cellgate_model_destroy(model);
    return status;
}

static void each_allocation_may_fail(const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", CELLGATE_FIXTURES, name);
    assert_true(fail_each_allocation(load, path) > 60);
}

static void recurrent_layers(void **state)
{
    (void)state;
    each_allocation_may_fail("keras/mixed_recurrent.keras");
    each_allocation_may_fail("keras/gru_encoder_decoder.keras");
    each_allocation_may_fail("keras/rnn_stacked_states.keras");
    each_allocation_may_fail("keras/bidirectional_rnn_stacked.keras");
    each_allocation_may_fail("keras/encoder_decoder_bidirectional.keras");
}

static void attention(void **state)
{
    (void)state;
    each_allocation_may_fail("keras/attention_given_masks.keras");
    each_allocation_may_fail("keras/attention_encoder_decoder.keras");
}

static void moving_and_merging(void **state)
{
    (void)state;
    each_allocation_may_fail("keras/moving_time_distributed.keras");
    each_allocation_may_fail("keras/merge_layers.keras");
    each_allocation_may_fail("keras/merge_masks.keras");
    each_allocation_may_fail("keras/dot_attention.keras");
}

static void convolution_and_normalisation(void **state)
{
    (void)state;
    each_allocation_may_fail("keras/cnn_lstm.keras");
    each_allocation_may_fail("keras/time_distributed_axes.keras");
    each_allocation_may_fail("keras/features_first.keras");
    each_allocation_may_fail("keras/normalization.keras");
    each_allocation_may_fail("keras/rescaling.keras");
}

/* In .h5 weights are found in another way, and masks are no operations. */
static void legacy_files(void **state)
{
    (void)state;
    each_allocation_may_fail("tf_keras/cnn_lstm_nested.h5");
    each_allocation_may_fail("tf_keras/autoencoder.h5");
    each_allocation_may_fail("tf_keras/concatenate_masks.h5");
    each_allocation_may_fail("tf_keras/attention_causal.h5");
    each_allocation_may_fail("tf_keras/time_major_layers.h5");
    each_allocation_may_fail("tf_keras/operations.h5");
}

static void models_in_models(void **state)
{
    (void)state;
    each_allocation_may_fail("keras/nested_dictionaries.keras");
    each_allocation_may_fail("keras/nested_twice.keras");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_layers),
        cmocka_unit_test(attention),
        cmocka_unit_test(moving_and_merging),
        cmocka_unit_test(convolution_and_normalisation),
        cmocka_unit_test(legacy_files),
        cmocka_unit_test(models_in_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

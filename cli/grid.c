/* SPDX-License-Identifier: Apache-2.0 */
/* Who is chosen over a grid of shapes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/plan.h"

char cli_grid_letter(size_t choice)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    return choice < sizeof letters - 1 ? letters[choice] : '?';
}

static cellgate_status no_memory(cellgate_error *error)
{
    return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
}

/* The number of a choice, which is added where it is new. */
static cellgate_status find_choice(cli_grid *grid, const char *text,
                                   size_t *number, cellgate_error *error)
{
    char **grown;

    for (size_t i = 0; i < grid->choice_count; i++)
        if (strcmp(grid->choices[i], text) == 0) {
            *number = i;
            return CELLGATE_OK;
        }
    grown = realloc(grid->choices, (grid->choice_count + 1) * sizeof(char *));
    if (grown == NULL)
        return no_memory(error);
    grid->choices = grown;
    grown[grid->choice_count] = strdup(text);
    if (grown[grid->choice_count] == NULL)
        return no_memory(error);
    *number = grid->choice_count++;
    return CELLGATE_OK;
}

static cellgate_status ask(cli_grid *grid, cli_cell *cell,
                           cellgate_session *session,
                           const cellgate_question *question,
                           cellgate_error *error)
{
    cellgate_decision decision = { .struct_size = sizeof decision };
    cellgate_explanation *explanation = NULL;
    cellgate_status status =
        cellgate_explain(session, question, &explanation, error);

    if (status != CELLGATE_OK)
        return status;
    cellgate_explanation_decision(explanation, &decision);
    cell->batch = decision.batch;
    cell->steps = decision.steps;
    cell->seconds = decision.seconds;
    cell->error = decision.error;
    cell->ahead = decision.ahead;
    cell->estimate = decision.estimate;
    cell->rival = strdup(decision.rival);
    status = cell->rival != NULL
                 ? find_choice(grid, decision.choice, &cell->choice, error)
                 : no_memory(error);
    cellgate_explanation_destroy(explanation);
    return status;
}

static cellgate_status read_axes(cli_grid *grid, const cellgate_model *model,
                                 const plan_options *options,
                                 cellgate_error *error)
{
    cli_extents batch = { 1, 64 }, steps = { 1, 128 };
    cellgate_status status =
        cli_extents_read(&batch, options->batch, "batch", error);

    if (status == CELLGATE_OK)
        status = cli_extents_read(&steps, options->steps, "steps", error);
    if (status != CELLGATE_OK)
        return status;
    grid->rows = cli_extents_list(&batch, grid->batches);
    grid->columns = cli_extents_list(&steps, grid->steps);
    if (!cli_free_steps(model)) { /* the model's own */
        grid->columns = 1;
        grid->steps[0] = 0;
    }
    grid->cells = calloc(grid->rows * grid->columns, sizeof *grid->cells);
    return grid->cells != NULL ? CELLGATE_OK : no_memory(error);
}

cellgate_status cli_grid_init(cli_grid *grid, const char *path,
                              cellgate_session *session,
                              const cellgate_model *model,
                              const plan_options *options,
                              cellgate_error *error)
{
    cellgate_status status = read_axes(grid, model, options, error);

    grid->model = path;
    for (size_t i = 0; status == CELLGATE_OK && i < grid->rows * grid->columns;
         i++) {
        const cellgate_question question = { sizeof question,
                                             grid->batches[i / grid->columns],
                                             grid->steps[i % grid->columns],
                                             options->fill };

        status = ask(grid, &grid->cells[i], session, &question, error);
    }
    if (status == CELLGATE_OK && grid->steps[0] == 0)
        grid->steps[0] = grid->cells[0].steps;
    return status;
}

void cli_grid_finish(cli_grid *grid)
{
    for (size_t i = 0; grid->cells != NULL && i < grid->rows * grid->columns;
         i++)
        free(grid->cells[i].rival);
    for (size_t i = 0; i < grid->choice_count; i++)
        free(grid->choices[i]);
    free(grid->choices);
    free(grid->cells);
}

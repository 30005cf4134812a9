/* Tactus beside a program that trains: the C interface.
 *
 * A worker's life runs within tactus_await, up to where it needs the program: there it asks, and
 * stands still; the program takes what is asked, does it, and answers, with which the next
 * tactus_await goes on:
 *
 *     tactus_run* run = tactus_open(program);
 *     for (;;) {
 *       tactus_request asked;
 *       if (tactus_await(run, 100, &asked) == 0) continue;     // look for signals meanwhile
 *       if (asked.kind == TACTUS_END) break;
 *       ...                                                    // do it
 *       tactus_answer answer = {.loss_sum = ...};
 *       tactus_reply(run, &answer);
 *     }
 *     tactus_close(run);
 *
 * No call goes from the library into the program. One thread at a time may call, but for what says
 * otherwise; it need not be the same each time. Functions that can fail return a negative number,
 * TACTUS_MISUSED or another, after which tactus_error says why.
 * A struct only grows at its end, and with it TACTUS_ABI.
 */

#ifndef TACTUS_SDK_H
#define TACTUS_SDK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TACTUS_ABI 5

typedef struct tactus_run tactus_run;

enum {
  TACTUS_MISUSED = -1, /* the call is in the wrong place, and has changed nothing */
  TACTUS_FAILED = -2   /* something else went wrong, such as the device */
};

enum {
  TACTUS_BIND = 0,          /* keep parameters, gradients, states and buffers in this memory now */
  TACTUS_COMPUTE = 1,       /* loss and gradients of a batch */
  TACTUS_STEP = 2,          /* a step of the optimizer, by these gradients */
  TACTUS_TAKE_STATE = 3,    /* the states were written to: as after so many steps */
  TACTUS_READ_BUFFERS = 4,  /* put the buffers' values into their memory */
  TACTUS_WRITE_BUFFERS = 5, /* take them from there */
  TACTUS_END = 6,           /* training is over; needs no answer */
  TACTUS_EDGE = 7,  /* of a group: it stands still between two epochs, or is over. Offer what
                    * the others are to know, and be asked again, or answer nothing: go on.
                    * Nobody goes on before all do. */
  TACTUS_MEMORY = 8 /* of a program that lends memory: memory_bytes of its device, aligned to 64
                     * bytes and zero; 0: keep no memory that is not used, as others need some */
};

typedef struct {
  int32_t kind;
  int32_t first_of_sum;  /* COMPUTE: the gradients are zero, or the batch's take their place */
  int32_t last_of_round; /* COMPUTE: no other of this member's follows in the round */
  int32_t failed;        /* END: `text` says what went wrong */

  /* BIND. STEP: gradients of the step, which may be other memory than the bound. Floats, in the
   * layout of tactus_layout, in the memory of the program's device; so are states. Buffers are the
   * host's. */
  float* parameters;
  float* gradients;
  uint64_t length;
  float* const* states; /* `state_count` buffers of `length` */
  uint64_t state_count;
  float* buffers;
  uint64_t buffer_count;

  /* COMPUTE: the samples; none where this member only takes part. The mean gradient of the batch is
   * to be added, times index_count / unit. */
  const uint64_t* indices;
  uint64_t index_count;
  double unit;
  uint64_t epoch; /* of the samples */

  double gain;       /* STEP: what the optimizer's own rate is multiplied by */
  uint64_t steps;    /* TAKE_STATE */
  const char* text;  /* END, EDGE where `over`: why */
  int32_t suspended; /* END: it goes on later, in another process */

  /* COMPUTE: samples that are probably asked for next, of a program that reads ahead */
  const uint64_t* ahead;
  uint64_t ahead_count;
  /* COMPUTE, EDGE: where training stands, which may have begun in another process */
  uint64_t rounds;   /* applied */
  uint64_t epochs;   /* used whole */
  uint64_t consumed; /* samples of the next one */
  double base_steps; /* as `progress` of tactus_standing */
  /* EDGE: what was offered, by this member and those whose key and count were the same, of one
   * after the other; null: nothing was, or that was in a group that is lost */
  const double* gathered; /* members * value_count */
  uint64_t members;
  uint64_t place; /* of this one among them */
  int32_t over;   /* training has ended; the others may end at any time */
  /* COMPUTE: so many segments, from the first one on, tactus_segment_ready may be called for; 0
   * where nobody waits for them, or other batches follow in the round */
  uint64_t early_segments;
  /* MEMORY */
  uint64_t memory_bytes;
  /* MEMORY, BIND: of what was lent, what is no longer needed by anything that is queued on the
   * program's stream from now on */
  void* const* returned;
  uint64_t returned_count;
} tactus_request;

typedef struct {
  double loss_sum;   /* COMPUTE: over the batch's samples */
  const char* error; /* why it could not be done: training fails by it; or null */
  /* EDGE: what is offered, in one turn with those that offer as much by the same key; else null */
  const double* values;
  uint64_t value_count;
  uint64_t key;
  void* memory; /* MEMORY: it lives until it is returned, or the run is closed; null: no room */
} tactus_answer;

/* Where training stands, as of the round that was applied last. */
typedef struct {
  uint64_t rounds;   /* applied */
  uint64_t epoch;    /* of the round's samples */
  uint64_t consumed; /* samples of that epoch, this round included */
  uint64_t samples;  /* trained on by all members */
  uint64_t plan_version;
  double loss;          /* mean over the round's samples of all members */
  double gradient_norm; /* of the round's gradient */
  double gain;          /* the learning rate rule's */
  double progress;      /* in base steps: samples over the program's batch, more under adascale */
  int32_t applied;      /* whether the round changed the parameters: it was finite */
  uint32_t rank;        /* in the group */
  uint32_t size;        /* of the group */
} tactus_standing;

uint32_t tactus_abi(void);

/* program: JSON, see sdk/program.h. Null where it is refused; then tactus_open_error says why, on
 * the same thread. */
tactus_run* tactus_open(const char* program);
/* The same, as a member of a group that an agent tells it of: `socket` is what the agent has put
 * into TACTUS_CONTROL_SOCKET. How it adapts is then the job's to say, and its name. */
tactus_run* tactus_join(const char* program, const char* socket);
const char* tactus_open_error(void);
/* 1: programs may be on "cuda:N", where there is a device; 0: this library was built without. */
int32_t tactus_knows_cuda(void);

/* Where each segment begins in the flat memory [elements], in the order of the program's. `offsets`
 * has room for `count`. TACTUS_MISUSED, without a word from tactus_error: they are not so many. */
int32_t tactus_layout(const tactus_run* run, uint64_t* offsets, uint64_t count);

/* 1: `asked` is filled in, with memory that lives until the answer; 0: nothing is asked yet, as
 * others were waited for so long. */
int32_t tactus_await(tactus_run* run, int32_t milliseconds, tactus_request* asked);
int32_t tactus_reply(tactus_run* run, const tactus_answer* answer);

/* The segment's gradient is final in this round: what is reduced together with it leaves for the
 * other members as soon as all of that is, while the rest is computed, and the memory has what
 * comes of it. Nothing takes that back: not even another answer. Optional, in any order, once a
 * segment; those that are not told are final with the answer. Any thread while the batch is
 * computed, one at a time. */
int32_t tactus_segment_ready(tactus_run* run, uint64_t segment);

/* What the program queues on its device from now on is on that stream (cudaStream_t; null, as at
 * first: CUDA's default stream). Whatever a call takes from the program comes behind all that is
 * queued there when it is made, and what is queued there behind a call finds what that has done;
 * neither waits on the host. It lives until another is named, or the run has ended. A program on
 * the host has none. */
int32_t tactus_use_stream(tactus_run* run, void* stream);

int32_t tactus_get_standing(tactus_run* run, tactus_standing* standing);
/* JSON: batch sizes by rank, synchronization, period, and decisions made since the last call, with
 * their reasons. The text lives until the next call. */
const char* tactus_plan(tactus_run* run);

/* Training ends at the next edge of a round. Any thread. */
void tactus_stop(tactus_run* run, const char* reason);

/* Of the last call that failed. */
const char* tactus_error(const tactus_run* run);

/* Ends training at once where it is not over; a group hears `why`. The memory that was shown stays. */
void tactus_end(tactus_run* run, const char* why);

/* The same, and frees the run with all its memory. Null does nothing. */
void tactus_close(tactus_run* run);

#ifdef __cplusplus
}
#endif

#endif /* TACTUS_SDK_H */

// Holds the counter of deadbits_move.
#include "runtime/spans/deadbits.h"

atomic_u32 deadbits_moves;

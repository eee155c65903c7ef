// The number of changes of turn.
#include "runtime/spans/deadbits.h"

atomic_u32 deadbits_moves;

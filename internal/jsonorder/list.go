package jsonorder

// blockSize is how many entries a list allocates at once. It is a power of two.
const (
	blockBits = 10
	blockSize = 1 << blockBits
)

// The limits of the memory that a Reader keeps for reuse: how many blocks of each list, and
// how many keys.
const (
	maxBlocks = 2
	maxKeys   = 1 << 10
)

// list is like a slice, but it grows without copying its elements. A growing slice allocates
// several times its final length.
type list[T any] struct {
	blocks []*[blockSize]T
	len    int
}

func (l *list[T]) add(v T) int {
	i := l.len
	if i>>blockBits == len(l.blocks) {
		l.blocks = append(l.blocks, new([blockSize]T))
	}
	l.blocks[i>>blockBits][i&(blockSize-1)] = v
	l.len++
	return i
}

func (l *list[T]) at(i int) *T { return &l.blocks[i>>blockBits][i&(blockSize-1)] }

func (l *list[T]) small() bool { return len(l.blocks) <= maxBlocks }

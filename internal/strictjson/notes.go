package strictjson

// notes is a list that grows without copying. A growing slice allocates several times its final length.
type notes struct {
	blocks []*[blockSize]uint32
	len    int
}

const blockSize = 1 << 10

func (n *notes) add(note uint32) int {
	i := n.len
	if i/blockSize == len(n.blocks) {
		n.blocks = append(n.blocks, new([blockSize]uint32))
	}
	n.blocks[i/blockSize][i%blockSize] = note
	n.len++
	return i
}

func (n *notes) at(i int) *uint32 { return &n.blocks[i/blockSize][i%blockSize] }

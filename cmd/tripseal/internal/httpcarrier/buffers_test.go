package httpcarrier

import (
	"strings"
	"testing"
)

func TestABufferThatIsLentAgainIsEmpty(t *testing.T) {
	for range 100 {
		buffer := copyBuffers{}.Get()
		if strings.Trim(string(buffer), "\x00") != "" {
			t.Fatal("a message of another request is in the buffer")
		}
		copy(buffer, "secret")
		copyBuffers{}.Put(buffer)
	}
}

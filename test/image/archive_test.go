package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
)

// image is the image in an OCI archive.
type image struct {
	Architecture, OS string
	Config           struct {
		User, WorkingDir      string
		Env, Entrypoint, Cmd  []string
		ExposedPorts, Volumes map[string]any
		Labels                map[string]string
	}
	History []struct{ Created string }

	layers  int
	entries []*tar.Header
	files   map[string][]byte
}

type descriptor struct {
	Digest, MediaType string
	Annotations       map[string]string
}

// readImage reads an OCI archive with one image.
func readImage(archive string) (*image, error) {
	packed, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	_, blobs, err := untar(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(blobs["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		return nil, fmt.Errorf("the archive has %d images, %w", len(index.Manifests), err)
	}
	blob := func(d descriptor) ([]byte, error) {
		name, _ := strings.CutPrefix(d.Digest, "sha256:")
		text := blobs["blobs/sha256/"+name]
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != name {
			return nil, errors.New("a blob is missing or has another digest: " + d.Digest)
		}
		return text, nil
	}
	read := func(d descriptor, into any) error {
		text, err := blob(d)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	i := &image{files: make(map[string][]byte)}
	if err := read(index.Manifests[0], &manifest); err != nil {
		return nil, err
	}
	if err := read(manifest.Config, i); err != nil {
		return nil, err
	}
	i.layers = len(manifest.Layers)
	for _, layer := range manifest.Layers {
		packed, err := blob(layer)
		if err != nil {
			return nil, err
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		entries, files, err := untar(unpacked)
		if err != nil {
			return nil, err
		}
		i.entries = append(i.entries, entries...)
		maps.Copy(i.files, files)
	}
	return i, nil
}

func untar(from io.Reader) (entries []*tar.Header, files map[string][]byte, err error) {
	files = make(map[string][]byte)
	for reader := tar.NewReader(from); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries, files, nil
		}
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, header)
		if header.Typeflag == tar.TypeReg {
			if files[header.Name], err = io.ReadAll(reader); err != nil {
				return nil, nil, err
			}
		}
	}
}

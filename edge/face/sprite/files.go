package sprite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"kennel/edge/face"
)

// MaxFile is the most bytes of a PNG file: a picture that does not compress has 71 kB; our own limit.
const MaxFile = 256 << 10

// The folders of a robot's resources, in the order in which they are searched (VEC-DSP-07, VEC-DSP-08).
var (
	singles = [...]string{"assets/sprites/independentSprites", "config/sprites/independentSprites", "config/facePNGs", "config/devOnlySprites/independentSprites"}
	folders = [...]string{"assets/sprites/spriteSequences", "config/sprites/spriteSequences", "config/devOnlySprites/spriteSequences"}
)

// Files reads the sprites of a robot's resources: a folder for each sequence, whose name is matched in any case, and single PNG files (VEC-DSP-07, VEC-DSP-08). Other files
// are ignored.
func Files(resources fs.FS) Source {
	return func(name string) (iter.Seq2[image.Image, error], error) {
		if name == "" || strings.ContainsAny(name, `/\`) || !fs.ValidPath(name) {
			return nil, fs.ErrNotExist
		}
		for _, folder := range folders {
			dir, err := foldName(resources, folder, name)
			if err != nil {
				return nil, err
			}
			if dir == "" {
				continue
			}
			files, err := frames(resources, dir)
			if err != nil {
				return nil, err
			}
			return decode(resources, files), nil
		}
		for _, folder := range singles {
			file, err := foldName(resources, folder, name+".png")
			if err != nil {
				return nil, err
			}
			if file != "" {
				return decode(resources, []number{{file: file}}), nil
			}
		}
		return nil, fs.ErrNotExist
	}
}

// foldName returns the path of an entry of a folder whose name is equal in any case; "": there is none.
func foldName(from fs.FS, folder, name string) (string, error) {
	entries, err := fs.ReadDir(from, folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), name) {
			return path.Join(folder, e.Name()), nil
		}
	}
	return "", nil
}

// frames returns the pictures of a folder, in the order of the two to five digits at the end of their names.
func frames(from fs.FS, dir string) ([]number, error) {
	entries, err := fs.ReadDir(from, dir)
	if err != nil {
		return nil, err
	}
	var files []number
	for _, e := range entries {
		base, is := strings.CutSuffix(strings.ToLower(e.Name()), ".png")
		if !is || e.IsDir() {
			continue
		}
		digits := base[len(strings.TrimRight(base, "0123456789")):]
		if len(digits) < 2 || len(digits) > 5 {
			return nil, fmt.Errorf("%w: %s: expected a name that ends with 2 to 5 digits, found %.60q", ErrSprite, path.Base(dir), e.Name())
		}
		n, _ := strconv.Atoi(digits) // at most five digits
		if len(files) == MaxFrames {
			return nil, fmt.Errorf("%w: %s: expected at most %d pictures, found more", ErrSprite, path.Base(dir), MaxFrames)
		}
		files = append(files, number{n, path.Join(dir, e.Name())})
	}
	return ordered(files)
}

// decode reads pictures one by one.
func decode(from fs.FS, files []number) iter.Seq2[image.Image, error] {
	return func(yield func(image.Image, error) bool) {
		for _, f := range files {
			p, err := read(from, f.file)
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// read reads one file.
func read(from fs.FS, name string) (image.Image, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	p, err := ParsePNG(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Base(name), err)
	}
	return p, nil
}

// ParsePNG reads a PNG file of at most MaxFile bytes and the size of the display. The size is checked before the pixels are read. ErrSprite.
func ParsePNG(b []byte) (image.Image, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found more", ErrSprite, MaxFile)
	}
	c, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%w: expected a PNG file: %w", ErrSprite, err)
	}
	if c.Width > face.Width || c.Height > face.Height {
		return nil, fmt.Errorf("%w: expected at most %d by %d pixels, found %d by %d", ErrSprite, face.Width, face.Height, c.Width, c.Height)
	}
	p, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%w: expected a whole PNG file: %w", ErrSprite, err)
	}
	return p, nil
}

// number is a picture of a sequence by the number at the end of its file's name.
type number struct {
	n    int
	file string
}

// ordered returns the files of a sequence in the order of their numbers, which count from 0 (part of VEC-DSP-08).
func ordered(files []number) ([]number, error) {
	slices.SortFunc(files, func(a, b number) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.file, b.file)) })
	for i, f := range files {
		if f.n != i {
			return nil, fmt.Errorf("%w: expected picture %d, found %d in %.60q", ErrSprite, i, f.n, f.file)
		}
	}
	return files, nil
}

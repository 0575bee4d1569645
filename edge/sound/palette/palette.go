// Package palette has the sounds that come with Kennel, made from text: voices of moods, greetings, what happens to the robot, signals and motion.
//
// sounds/ has one bank for each subject, in the form of package bank. The clips of package repertoire post its events. No sound of an original robot is among them.
package palette

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"kennel/edge/sound/bank"
)

//go:embed sounds/*.sounds
var files embed.FS

// Bank reads all sounds. Each call returns a bank of its own, because engines keep what they have made in it.
func Bank() (*bank.Bank, error) {
	var banks []*bank.Bank
	var errs []error
	names, err := fs.Glob(files, "sounds/*.sounds")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		k, err := bank.Parse(b, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		banks = append(banks, k)
	}
	return bank.Merge(banks...), errors.Join(errs...)
}

package voice

import (
	"os"
	"testing"

	"kennel/cmd/e2e/housetest"
)

func TestMain(m *testing.M) { os.Exit(housetest.Run(m)) }

package housetest

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"

	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// SignedArchive returns a production archive signed with the house's development key; its system image has about n bytes.
func (h *House) SignedArchive(v ota.Version, n int) []byte {
	h.T.Helper()
	text, err := os.ReadFile(h.Ready.Files["release_key"])
	if err != nil {
		h.T.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		h.T.Fatal(err)
	}
	images := map[manifest.Part]io.Reader{manifest.Boot: bytes.NewReader(archivetest.Image(1, 20_000)), manifest.System: bytes.NewReader(archivetest.Image(2, n))}
	var out bytes.Buffer
	if err := archive.Write(&out, &manifest.Manifest{Version: v}, images, archive.WriteOptions{Key: key.(*rsa.PrivateKey)}); err != nil {
		h.T.Fatal(err)
	}
	return out.Bytes()
}

// Package archive reads and writes update archives, the .ota files that robots install (VEC-OTA-01, VEC-OTA-05 to 08).
//
// An archive is an uncompressed tar of regular files in this order, without any other entry:
//
//	manifest.ini      see package manifest
//	manifest.sha256   its signature
//	one file for each image, in the order of manifest.Kind.Parts
//
// An image is compressed with gzip and then, if its section says encryption=1, encrypted as "openssl enc -aes-256-ctr -md md5" does it: "Salted__", eight bytes
// of salt, then the ciphertext. Key and IV are the MD5 of password and salt, in one round (VEC-OTA-07).
//
// Write flushes the compressor every 4 MB. A Reader notes these places as it passes them, and a later one can begin there if it has the image's beginning
// (Image.Mark, Point). In an archive of another writer there are none, and it begins with the image.
//
// Reader takes an archive apart while it arrives and keeps nothing of it. The order of its checks is the order of what can be trusted: name and kind of the
// tar entries, the signature, the manifest, and then each image's bytes as they pass. Each fault has the original's code:
//
//	200  an entry is missing, has another name or comes at another place; an entry follows the last image
//	201  the manifest is not understood
//	204  not a tar, damaged, cut, or an entry that no honest archive has (a link, a sparse file, too large); data after its end
//	205  not gzip, or damaged
//	209  the signature is not that key's; an image has another length or hash than the signed manifest says
//	210  an image cannot be decrypted: another scheme, or no password is known
//	216  update_version is no version
//
// A robot that lacks "Salted__" at the start fails inside openssl; the source gives no code for it, and 210 is used. A wrong password shows as 205, because
// what it gives is not gzip.
package archive

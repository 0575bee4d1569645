// Prints the rows of a Parquet file, and what its metadata says of them, as JSON; numbers of 64 bits as texts.
const [modules, path] = process.argv.slice(2)
const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import(modules + '/hyparquet/src/node.js')
const file = await asyncBufferFromFile(path)
const metadata = await parquetMetadataAsync(file)
const values = JSON.parse(metadata.key_value_metadata.find((m) => m.key === 'kennel.values').value)
const rows = await parquetReadObjects({ file })
process.stdout.write(JSON.stringify({ rows, values }, (_, v) => (typeof v === 'bigint' ? String(v) : v)))

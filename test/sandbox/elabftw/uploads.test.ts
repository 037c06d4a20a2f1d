import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { elabftw, failed } from './playing.ts';

function form(file?: { name: string; content: string }): {
  raw: Buffer;
  headers: { 'content-type': string };
} {
  const lines = [
    '--edge',
    'Content-Disposition: form-data; name="comment"',
    '',
    'raw data',
    ...(file
      ? [
          '--edge',
          `Content-Disposition: form-data; name="file"; filename="${file.name}"`,
          'Content-Type: text/csv',
          '',
          file.content,
        ]
      : []),
    '--edge--',
    '',
  ];
  return {
    raw: Buffer.from(lines.join('\r\n')),
    headers: { 'content-type': 'multipart/form-data; boundary=edge' },
  };
}

test('a file is attached with its name, size and hash; the same one twice makes two', async () => {
  const { make, call, control } = await elabftw();
  const path = `${await make()}/uploads`;
  for (let times = 1; times <= 2; times += 1) {
    const sent = { method: 'POST', ...form({ name: 'run 1.csv', content: 'a,b\n1,2\n' }) };
    expect(await call(path, sent)).toMatchObject({
      status: 201,
      headers: { location: `https://eln.invalid${path}/${times}` },
    });
  }
  const hash = createHash('sha256').update('a,b\n1,2\n').digest('hex');
  const record = { real_name: 'run 1.csv', filesize: 8, hash, comment: 'raw data' };
  expect((await call(path)).json).toMatchObject([
    { ...record, id: 1 },
    { ...record, id: 2 },
  ]);
  expect(control.experiments()[0]?.uploads).toMatchObject([record, record]);
});

test('a form without a file gets 400, and so does a form anywhere else', async () => {
  const { make, call } = await elabftw();
  const path = await make();
  const lacking = await call(`${path}/uploads`, { method: 'POST', ...form() });
  expect(lacking).toMatchObject(failed(400, 400, /reading file/));
  const elsewhere = await call(`${path}/comments`, { method: 'POST', ...form() });
  expect(elsewhere).toMatchObject(failed(400, 400, /content-type/));
});

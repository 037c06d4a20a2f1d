import { utils, write } from '@e965/xlsx';
import { describe, expect, test } from 'vitest';
import { recognise } from '../../src/parse/parse.js';

const recognised = (content: string | Uint8Array, name = 'run.dat') => {
  const outcome = recognise(typeof content === 'string' ? Buffer.from(content) : content, name);
  return 'format' in outcome ? outcome.format : outcome.unreadable;
};

const workbook = (bookType: 'xlsx' | 'xls'): Uint8Array => {
  const book = utils.book_new();
  utils.book_append_sheet(book, utils.aoa_to_sheet([[1]]), 'S');
  return write(book, { type: 'buffer', bookType });
};

describe('the format of a file', () => {
  test.each([
    ['{"a":1}', 'json'],
    ['\ufeff [\n {"a": [1, 2', 'json'],
    ['{"a":1}\n{"a":2}', 'json'],
    ['{"a":"cut within a te', 'json'],
    ['[1, 2, tr', 'json'],
    ['[Header]\na=1', 'delimited'],
    ['[12:30:05] started', 'delimited'],
    ['[1] first line', 'delimited'],
    ['{sample} 7', 'delimited'],
    ['<?xml version="1.0"?><r/>', 'xml'],
    ['<Body_xle>\n <a>1</a', 'xml'],
    ['<!-- note --><r/>', 'xml'],
    ['<5 mg\n<6 mg', 'delimited'],
    ['<b>1</c>\n', 'delimited'],
    ['<!DOCTYPE html><html>', 'a web page: save it as .xlsx'],
    ['##TITLE= x\n##JCAMP-DX= 4.24', 'jcamp'],
    ['$$ a comment\n##JCAMPDX= 5', 'jcamp'],
    ['##TITLE=gum\n##Spectrum Software 1.6\nScans; 45\n', 'delimited'],
    ['##TITLE= x\n##XYDATA= (X++(Y..Y))', 'jcamp'],
    ['##BLOCKS= 4\nPlate:\t1', 'delimited'],
    ['TITLE\tx\nDATA TYPE\tINFRARED', 'delimited'],
    ['H|\\^&|||x', 'records'],
    ['\x02' + '1H|\\^&|||x\r\x03A1\r\n', 'records'],
    ['1H|\\^&|||x\r2P|1', 'records'],
    ['H!~*&!', 'records'],
    ['\x0bMSH|^~\\&|LIS', 'records'],
    ['\ufeffMSH|^~\\&|LIS', 'records'],
    ['H,a,b\nR,1,2', 'delimited'],
    ['H,,,,\n', 'delimited'],
    ['a,b\n1,2\n', 'delimited'],
    ['', 'delimited'],
    ['%PDF-1.7', 'a PDF document'],
    ['PK\x03\x04............data.csv', 'a zip archive'],
  ])('is recognised by its content: %j', (content, expected) => {
    expect(recognised(content)).toBe(expected);
  });

  test('is recognised regardless of its name', () => {
    expect(recognised(workbook('xlsx'), 'run.csv')).toBe('xlsx');
    expect(recognised(workbook('xls'), 'run.txt')).toBe('xlsx');
    expect(recognised('a\tb\n1\t2\n', 'run.xls')).toBe('delimited');
    expect(recognised('a,b\n', 'run.json')).toBe('delimited');
    expect(recognised(Buffer.from([0x1f, 0x8b, 8, 0]), 'run.csv')).toBe('a gzip archive');
  });

  test('is recognised by its name if the content is damaged', () => {
    expect(recognised('{"a":1,}', 'run.json')).toBe('json');
    expect(recognised('{"a":1,}', 'run.txt')).toBe('delimited');
    expect(recognised('<a><b></a>', 'run.xml')).toBe('xml');
  });

  test('is recognised in UTF-16', () => {
    const text = '\ufeff{"a":"µ"}';
    expect(recognised(Buffer.from(text, 'utf16le'))).toBe('json');
    expect(recognised(Buffer.from(text, 'utf16le').swap16())).toBe('json');
  });
});

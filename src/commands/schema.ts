import type { Command } from 'commander';

export function addSchema(program: Command): void {
  program
    .command('schema')
    .description("print the configuration's JSON Schema, for editors")
    .addHelpText('after', '\nExample:\n  labfeed schema > labfeed.schema.json')
    .action(async () => {
      const { jsonSchema } = await import('../config/json-schema.js');
      console.log(JSON.stringify(jsonSchema(), null, 2));
    });
}

import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'quickstart/', 'coverage/', 'api/', '**/*.js', '**/*.cjs'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-assertions': [
        'error',
        { assertionStyle: 'as', objectLiteralTypeAssertions: 'never' },
      ],
      // A statement of the store is a template: db.run`DELETE …`.
      '@typescript-eslint/no-unused-expressions': ['error', { allowTaggedTemplates: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // Classes that hold only what the type system needs (e.g. branded results) are fine; `void` marks a promise left alone on purpose.
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
  {
    files: ['test/**/*.ts'],
    ignores: ['test/support/until.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: 'node:timers/promises',
          importNames: ['setTimeout'],
          message: 'Wait for a condition with until(), test/support/until.ts.',
        },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "NewExpression[callee.name='Promise'] > ArrowFunctionExpression > CallExpression[callee.name='setTimeout']",
          message: 'Wait for a condition with until(), test/support/until.ts.',
        },
      ],
    },
  },
);

import{a as o,b as p,f as c}from"./chunk-BHJGGLLI.js";import{B as r,c as e,j as i}from"./chunk-CTMOHHQZ.js";function a({lines:n,what:m}){let[t,s]=r(!1);return o(e,{children:[o("pre",{children:n.join(`
`)}),o(c,{onClick:()=>{i(n.join(`
`)).then(s)},children:[o(p,{name:t?"check":"link"})," ",t?"Copied":`Copy the ${m}`]})]})}export{a};
